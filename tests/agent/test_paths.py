"""A file may be called anything: its name arrives whole and leads back to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdash.agent.paths import real, shown
from specdash.intake.door import admit
from specdash.monitor import frames
from specdash.sanitise import sanitise
from tests.agent.driver import RunningAgent

NASTY = [
    b"two words.log",
    b"two\nlines.log",
    b"\x1b[2Jred\x07.log",
    b"caf\xe9.log",
    "é漢字.log".encode(),
    b"a\\x41.log",
]


@given(st.binary(max_size=40))
def test_a_path_is_readable_and_leads_back(raw: bytes) -> None:
    path = raw.decode("utf-8", "surrogateescape")
    sent = shown(path)
    assert real(sent) == path
    assert sanitise(sent) == sent, "nothing of it is taken away at the door"


@pytest.mark.parametrize("path", ["/var/log/server.log", "/srv/Grüße 世界/x.log", "/a\\b"])
def test_an_ordinary_path_stays_as_it_is(path: str) -> None:
    assert shown(path) == path


@pytest.mark.parametrize("name", NASTY, ids=repr)
def test_a_log_of_any_name_is_found_behind_its_process_and_followed(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    program = "import sys, time; print('hello', flush=True); sys.stdin.read()"
    with path.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-c", program, "made-up-server"], stdout=out, stdin=subprocess.PIPE
        )
    try:
        with RunningAgent() as agent:
            agent.ask("watch", match=["made-up-server"], interval=0.2)
            found = agent.wait(frames.Processes, lambda frame: any(p.pid == server.pid for p in frame.list))
            admitted = admit(found)
            assert isinstance(admitted, frames.Processes)
            sent = next(p.out for p in admitted.list if p.pid == server.pid)
            assert sent == shown(str(path))
            agent.ask("tail", path=sent)
            log = agent.wait(frames.Log)
            assert (log.path, log.raw) == (sent, b"hello\n")
    finally:
        server.kill()
        server.communicate()


def test_a_missing_log_of_any_name_is_told_under_the_name_that_was_asked_for(tmp_path: Path) -> None:
    sent = shown(str(tmp_path / "no\nsuch\x1b.log"))
    with RunningAgent() as agent:
        agent.ask("tail", path=sent)
        state = admit(agent.wait(frames.LogState))
    assert isinstance(state, frames.LogState)
    assert (state.path, state.error) == (sent, "no such file")
