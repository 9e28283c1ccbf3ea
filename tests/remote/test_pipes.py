"""This machine as a host, and the words given to the ssh program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specdash.monitor import frames
from specdash.remote.errors import FAILURES, TargetError, failure, said
from specdash.remote.link import Link
from specdash.remote.options import LinkOptions
from specdash.remote.pipes import OpenSshTransport
from specdash.remote.target import parse_target
from tests.remote import standin
from tests.remote.doubles import FakeClock, Seen, running


def local(seen: Seen, **options: Any) -> Link:
    return Link(parse_target("local"), LinkOptions(block=standin.block(), **options), seen)


async def test_this_machine_is_a_host_like_any_other() -> None:
    seen = Seen()
    async with running(local(seen)) as _:
        await seen.state("live")
        hello = seen.of(frames.Hello)[0]
        assert hello.uid == os.getuid()
        assert hello.python == f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(ProcessLookupError):
        os.kill(hello.pid, 0)


async def test_a_killed_agent_is_replaced() -> None:
    seen = Seen()
    async with running(local(seen)):
        await seen.state("live")
        os.kill(seen.of(frames.Hello)[0].pid, 9)
        await seen.until(lambda: seen.states[-3:] == ["lost", "connecting", "live"])
    lost = next(link for link in seen.links if link.state == "lost")
    assert lost.reason == "local: the agent ended (signal KILL)"


async def test_a_stopped_agent_is_killed_before_it_is_replaced() -> None:
    seen, clock = Seen(), FakeClock()
    link = Link(parse_target("local"), LinkOptions(block=standin.block()), seen, clock=clock)
    async with running(link):
        await seen.state("live")
        pid = seen.of(frames.Hello)[0].pid
        assert os.getsid(pid) != os.getsid(0)  # ctrl+c in our terminal is not meant for it
        os.kill(pid, signal.SIGSTOP)
        await seen.quiet()
        await clock.pass_(10)
        await seen.state("lost")
        await clock.pass_until(lambda: seen.states[-1] != "lost")
        await seen.state("live")
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_two_megabytes_of_frames_arrive_whole_and_in_order() -> None:
    seen = Seen()
    link = local(seen)
    async with running(link):
        await seen.state("live")
        link.send({"r": "flood", "lines": 15_000})
        await seen.until(lambda: len(seen.of(frames.Note)) == 15_000)
    assert [int(note.text[:6]) for note in seen.of(frames.Note)] == list(range(15_000))


def test_the_ssh_program_gets_every_option_and_no_chance_to_ask() -> None:
    options = LinkOptions(ssh_config=Path("/c"), identity=Path("/k"), jump="a,b@c:23")
    words = OpenSshTransport(parse_target("root@gpubox:2222"), options).arguments()
    assert words[-2:] == ["--", "gpubox"]
    for pair in (["-F", "/c"], ["-p", "2222"], ["-i", "/k"], ["-J", "a,b@c:23"], ["-l", "root"]):
        assert pair in [words[n : n + 2] for n in range(len(words))]
    assert {"BatchMode=yes", "ForwardAgent=no", "ClearAllForwardings=yes"} <= set(words)


def test_a_jump_that_ssh_would_read_as_an_option_is_refused() -> None:
    options = LinkOptions(jump="-oProxyCommand=reboot")
    with pytest.raises(TargetError):
        OpenSshTransport(parse_target("gpubox"), options).arguments()


def test_asyncssh_is_not_loaded_before_a_connection_needs_it() -> None:
    modules = ("link", "errors", "target", "options", "pipes", "payload", "asking")
    imports = "".join(f"import specdash.remote.{module}\n" for module in modules)
    code = imports + "import sys; print([name for name in ('asyncssh', 'textual') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_every_sentence_names_its_host_and_can_be_filled_in() -> None:
    facts = dict.fromkeys(
        (
            "address",
            "detail",
            "exit",
            "file",
            "fingerprint",
            "known",
            "line",
            "name",
            "port",
            "tried",
            "type",
        ),
        "x",
    )
    facts |= dict.fromkeys(("user", "what", "why", "advice"), "y")
    for key, row in FAILURES.items():
        error = failure(key, host="gpubox", seconds=3.0, **facts)
        assert error.message.startswith(("gpubox: ", "local: "))
        assert "{" not in str(error)
        assert error.retry or error.hint or key in ("ssh_not_ssh", "ssh_known_hosts_parse", "local_start"), (
            key
        )
        assert row.retry is error.retry


def test_what_a_host_says_cannot_move_the_cursor_nor_break_the_line() -> None:
    assert said(b"\x1b[2Jone\r\n\x00two\n\n" + b"\xff" * 3) == "one / two / \ufffd\ufffd\ufffd"
    assert len(said(b"x" * 5000)) == 201
    assert "\n" not in failure("ssh_connection_dead", host="gpubox", detail="a\nb\x1b[0m").message
