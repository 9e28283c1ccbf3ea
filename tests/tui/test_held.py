"""What must reach the operator: alarms while the display is held, each server's log in the evidence."""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path

import msgspec
import pytest

from specdash.logs.buffer import LogBuffer
from specdash.tui.app import terminal_title
from specdash.tui.widgets.logframe import LogPane
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import happened, screen_text, settle
from tests.tui.test_alerts import Ear, names


def ending(folder: Path, suffix: str) -> list[Path]:
    return [path for path in names(folder) if path.name.endswith(suffix)]


def _has(folder: Path, many: int) -> bool:
    return len(ending(folder, ".log")) == many


async def test_an_alarm_rings_while_the_display_is_held(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fakes.source(states.capture())
    app = make_app(source)
    ear = Ear(app, monkeypatch)
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        await pilot.press("space")
        source.set(states.stalled())
        await settle(pilot)
        assert board.frozen is not None
        assert "STALLED" not in screen_text(app)
        assert len(ear.notes) == 1
        assert terminal_title(board) == "✖ gpubox stalled"


async def test_evidence_of_two_servers_of_one_name_has_the_log_of_each(
    make_app: Make, own_folders: Path
) -> None:
    state = states.two_servers()
    one, two = (msgspec.structs.replace(server, name="sglang:30000") for server in state.servers)
    source = fakes.source(msgspec.structs.replace(state, servers=(one, two)))
    for server in (one, two):
        source.logs[server.key] = LogBuffer()
        source.logs[server.key].append(f"of {server.pid}\n".encode())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("d")
        assert await happened(pilot, lambda: bool(ending(own_folders, ".tar.gz")))
    (written,) = ending(own_folders, ".tar.gz")
    with tarfile.open(written) as archive:
        logs = [archive.extractfile(name) for name in archive.getnames() if "/log-" in name]
        assert sorted(log.read() for log in logs if log) == sorted(
            f"of {server.pid}\n".encode() for server in (one, two)
        )


async def test_saved_logs_of_two_hosts_have_two_names(make_app: Make, own_folders: Path) -> None:
    here = fakes.source(states.serving())
    there = fakes.source(msgspec.structs.replace(states.serving(), target="root@other"))
    app = make_app(here, there)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        for number in range(2):
            board.action_choose(number)
            await pilot.press("ctrl+s")
            assert await happened(pilot, partial(_has, own_folders, number + 1))
    saved = {path.name for path in ending(own_folders, ".log")}
    assert saved == {"gpubox-sglang-30000.log", "other-sglang-30000.log"}


async def test_the_view_of_a_dead_server_ends_with_its_last_line_and_not_with_its_successors(
    make_app: Make,
) -> None:
    state = states.crashed()
    dead = msgspec.structs.replace(state.servers[0], diagnoses=())
    heir = msgspec.structs.replace(
        dead, key="9:9", pid=9, state="loading", gone_at=None, started_at=dead.started_at + 9, processes=3
    )
    source = fakes.source(msgspec.structs.replace(state, servers=(dead,)))
    buffer = source.logs[dead.key] = source.logs[heir.key] = LogBuffer()
    buffer.append(b"its own line\n" * 50 + b"ERROR its last words\n")
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        buffer.begin(52)
        buffer.append(b"of the next one\n" * 100)
        source.set(msgspec.structs.replace(state, servers=(heir, dead)))
        await settle(pilot)
        board.action_choose(0)
        await settle(pilot)
        text = screen_text(app)
        assert "its last words" in text
        assert "line 51 of 151" in text
        assert "pid 9 writes it now" in text
        assert "0 errors" not in text, "what is counted is of who writes now"
        assert board.query_one(LogPane).follow is False
        await pilot.press("f")
        await settle(pilot)
        assert "its last words" not in screen_text(app), "who wants the next one's lines has them"
        board.action_choose(1)
        await settle(pilot)
        assert "151 lines · 0 warnings · 0 errors since line 52" in screen_text(app), (
            "each count says of what"
        )


async def test_the_silence_that_lasts_is_the_first_when_it_is_the_longest(make_app: Make) -> None:
    state = states.stalled()
    server = msgspec.structs.replace(state.servers[0], last_line_at=state.now - 372)
    source = fakes.source(msgspec.structs.replace(state, servers=(server,)))
    buffer = source.logs[server.key] = LogBuffer()
    buffer.append(b"[2026-11-29 10:00:00] a\n[2026-11-29 10:00:22] b\n[2026-11-29 10:00:23] c\n")
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        pane = board.query_one(LogPane)
        pane.next_silence()
        await settle(pilot)
        assert "6:12 without a line since line 3, until now   1 of 2, longest first" in screen_text(app)
        pane.next_silence()
        await settle(pilot)
        assert "22 s without a line before line 2   2 of 2, longest first, by the log's own" in screen_text(
            app
        )
        gone = msgspec.structs.replace(server, gone_at=state.now - 100, state="stopped")
        source.set(msgspec.structs.replace(state, servers=(gone,)))
        await settle(pilot)
        pane.next_silence()
        await settle(pilot)
        assert "1 of 1" in screen_text(app), "who is gone has ended, and is not silent"
