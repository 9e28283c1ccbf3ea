"""The log of a server changes under the reader's hands, over a real SSH connection: no line lost or twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specdash.logs.buffer import LogBuffer
from specdash.logs.lens import LogLens
from specdash.session.live import Session, SessionOptions, open_source
from specdash.sim.simulate import Simulation, simulate
from tests.sim.guest import until

LIMIT_S = 90.0

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("ssh") is None,
    reason="needs Linux and OpenSSH's client",
)


@contextlib.asynccontextmanager
async def watching(sim: Simulation, log: Path | None = None) -> AsyncIterator[Session]:
    options = SessionOptions(ssh_config=sim.ssh_config, log=str(log) if log else None, watch=True)
    session = open_source(sim.target, options)
    running = asyncio.create_task(session.run())
    try:
        yield session
    finally:
        await session.stop()
        await asyncio.wait_for(running, LIMIT_S)


async def until_it_has(session: Session, log: Path, text: str) -> None:
    """The newest line is this one. The buffer is another one when the log is followed anew."""

    def kept() -> LogBuffer:
        return session._logs.at(str(log)) or LogBuffer()

    try:
        await asyncio.wait_for(until(lambda: rows(kept())[-1:] == [("line", text)]), LIMIT_S)
    except (TimeoutError, asyncio.TimeoutError):
        raise AssertionError(f"{text} did not come; the last rows: {rows(kept())[-4:]}") from None


def rows(buffer: LogBuffer) -> list[tuple[str, str]]:
    lens = LogLens(buffer, polls=True)
    return [(row.kind, row.text) for row in map(lens.row, range(lens.first_row, lens.rows))]


class Writer:
    """A server that numbers its lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said = 0

    def say(self, many: int) -> str:
        with self.path.open("ab") as file:
            for _ in range(many):
                self.said += 1
                file.write(b"line %d\n" % self.said)
        return f"line {self.said}"


async def test_rotation_copy_truncation_and_replacement_bring_every_line_once_and_are_said(
    tmp_path: Path,
) -> None:
    log = tmp_path / "server.log"
    writer = Writer(log)
    async with simulate("zombie") as sim, watching(sim, log) as session:
        writer.say(3000)
        await until_it_has(session, log, "line 3000")
        writer.say(500)
        log.rename(tmp_path / "server.log.1")
        await until_it_has(session, log, writer.say(500))
        writer.say(500)
        shutil.copyfile(log, tmp_path / "server.log.1")
        os.truncate(log, 0)
        await until_it_has(session, log, writer.say(500))
        os.truncate(log, 0)
        await until_it_has(session, log, writer.say(500))
        fresh = Writer(tmp_path / "fresh")
        fresh.said = writer.said
        fresh.say(500)
        fresh.path.replace(log)
        writer.said = fresh.said
        await until_it_has(session, log, writer.say(500))
        buffer = session._logs.at(str(log))
        assert buffer is not None
        seen = rows(buffer)
    assert [text for kind, text in seen if kind == "line"] == [f"line {n}" for n in range(1, writer.said + 1)]
    assert [text for kind, text in seen if kind == "gap"] == [
        "the log was rotated here: a new file begins",
        "the log was rotated here: a new file begins",
        "the log was cut to nothing here: it begins again",
        "the log was replaced here by another file",
    ]


def log_of(session: Session) -> LogBuffer | None:
    """The log of the only server."""
    servers = session.state.servers
    return session.log(servers[0].key) if servers else None


def has_rule(buffer: LogBuffer) -> bool:
    return any(rule[2] == "gap" for rule in buffer.rules)


def cut(log: Path) -> bytes:
    """Copy it and cut it to nothing, as logrotate does; gives what the copy has."""
    copy = log.with_name(log.name + ".1")
    shutil.copyfile(log, copy)
    os.truncate(log, 0)
    whole, _, _ = copy.read_bytes().rpartition(b"\n")  # the last line may have gone on meanwhile
    return whole + b"\n"


async def test_a_living_servers_log_is_copied_and_cut_and_read_on() -> None:
    async with simulate("healthy", speed=20, serving_speed=20) as sim, watching(sim) as session:
        await asyncio.wait_for(until(lambda: (log := log_of(session)) and log.lines > 30), LIMIT_S)
        buffer, source = log_of(session), session.state.servers[0].log
        assert buffer is not None
        assert source is not None
        copied = cut(Path(source.path or ""))
        await asyncio.wait_for(until(lambda: has_rule(buffer)), LIMIT_S)
        before = [text for _, text in rows(buffer)[: [kind for kind, _ in rows(buffer)].index("gap")]]
        texts = [text for kind, text in rows(buffer) if kind == "line"]
    expected = LogBuffer()
    expected.append(copied)
    kept = [expected.text(line) for line in range(1, expected.lines + 1)]
    assert texts[: len(kept)] == kept, "every line of the copy, once and in order"
    assert len(before) >= len(kept)
