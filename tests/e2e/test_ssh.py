"""The link over a real OpenSSH sshd: what people's servers do, and what becomes of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from specdash.monitor import frames
from specdash.remote.asking import Prompter
from specdash.remote.link import Link
from specdash.remote.options import LinkOptions
from specdash.remote.target import parse_target
from tests.e2e.conftest import StartSshd
from tests.e2e.sshd import ALIAS, Sshd, generate_key, public
from tests.remote import standin
from tests.remote.doubles import Operator, Seen, running

RUN = 'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'


@asynccontextmanager
async def connected(
    server: Sshd, *config: str, ask: Prompter | None = None, more: str = "", to: str = ALIAS, **options: Any
) -> AsyncIterator[tuple[Link, Seen]]:
    """Run a link to the server with the stand-in agent."""
    seen = Seen()
    chosen = LinkOptions(
        ssh_config=server.client_config(*config, more=more),
        block=standin.block(),
        **{"interpreters": (sys.executable,), **options},
    )
    link = Link(parse_target(to), chosen, seen, ask)
    async with running(link):
        yield link, seen


async def reason(server: Sshd, *config: str, **options: Any) -> frames.Link:
    """Give the one line that says why there is no link."""
    async with connected(server, *config, **options) as (_, seen):
        await seen.until(lambda: seen.links[-1].state in ("refused", "lost", "live"))
        assert seen.links[-1].state != "live"
        assert "\n" not in (seen.links[-1].reason or "\n")
        return seen.links[-1]


def wrapper(server: Sshd, text: str) -> str:
    """A ForceCommand that does ``text`` first, as a start-up file would."""
    file = server.folder / "wrapper"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


async def test_the_agent_runs_there_and_answers(sshd: Sshd) -> None:
    async with connected(sshd) as (link, seen):
        await seen.state("live")
        assert seen.of(frames.Hello)[0].uid == os.getuid()
        await seen.until(lambda: any(frame.rtt_ms is not None for frame in seen.links))
        assert link.send({"r": "uid"})
        await seen.until(lambda: any("uid" in note.text for note in seen.of(frames.Note)))


async def test_the_agent_is_gone_when_the_link_is_stopped(sshd: Sshd) -> None:
    async with connected(sshd) as (_, seen):
        await seen.state("live")
        pid = seen.of(frames.Hello)[0].pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
