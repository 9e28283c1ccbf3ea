"""A link to a test's own sshd, and why there is none."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from specdash.monitor import frames
from specdash.remote.asking import Prompter
from specdash.remote.clock import Clock
from specdash.remote.link import Link
from specdash.remote.options import LinkOptions
from specdash.remote.target import parse_target
from tests.e2e.sshd import ALIAS, Sshd
from tests.remote import standin
from tests.remote.doubles import Seen, running

EXEC = 'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
"""The end of a ForceCommand that runs what was asked for, as start-up files of a shell are followed by it."""


@asynccontextmanager
async def connected(
    server: Sshd,
    *config: str,
    ask: Prompter | None = None,
    more: str = "",
    to: str = ALIAS,
    clock: Clock | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Link, Seen]]:
    """Run a link to the server with the stand-in agent."""
    seen = Seen()
    chosen = LinkOptions(
        ssh_config=server.client_config(*config, more=more),
        **{"block": standin.block(), "interpreters": (sys.executable,), **options},
    )
    link = Link(parse_target(to), chosen, seen, ask, clock=clock)
    async with running(link):
        yield link, seen


async def why_not(server: Sshd, *config: str, **options: Any) -> frames.Link:
    """Give the one line that says why there is no link."""
    async with connected(server, *config, **options) as (_, seen):
        await seen.until(lambda: seen.links[-1].state in ("refused", "lost", "live"))
        assert seen.links[-1].state != "live"
        assert "\n" not in (seen.links[-1].reason or "\n")
        return seen.links[-1]


def script(folder: Path, *lines: str, name: str = "wrapper") -> Path:
    """Write a program for the server to run."""
    file = folder / name
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return file
