"""What is looked for in a long log: in slices, with what was found so far, and what a filter hides."""

from __future__ import annotations

import pytest

from specdash.logs.buffer import LogBuffer
from specdash.tui.widgets import logslices
from specdash.tui.widgets.logreader import LogReader
from tests.tui.logviewer import Viewer, filled


def _long(lines: int = 12_000) -> LogBuffer:
    """Many pieces of memory, each of which is looked through at once."""
    buffer = LogBuffer()
    for first in range(0, lines, 1000):
        buffer.append(b"".join(b"line %d %s\n" % (n, b"x" * 300) for n in range(first, first + 1000)))
    return buffer


def finish(view: LogReader) -> None:
    """Look through all the rest."""
    while view.share is not None:
        view._work()


def share(view: LogReader) -> float:
    """How far it is; -1 where nothing is looked for."""
    return -1.0 if view.share is None else view.share


@pytest.fixture
def little_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice looks through one piece, as if it were a slow machine."""
    monkeypatch.setattr(logslices, "SLICE_S", 0.0)
    monkeypatch.setattr(logslices, "REST_S", 3600.0)
    monkeypatch.setattr(logslices, "SLOW_S", 0.0)


@pytest.mark.usefixtures("little_by_little")
async def test_a_long_search_goes_in_slices_says_how_far_it_is_and_can_be_stopped() -> None:
    app = Viewer(_long())
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        app.view.find("line 11999 ")
        await pilot.pause()
        assert 0 < share(app.view) < 0.5
        assert app.told == []
        assert app.shown[-1].startswith(" line 11999 "), "nothing was found yet"
        app.view.move(-3)
        await pilot.pause()
        assert not app.view.follow, "keys go on"
        finish(app.view)
        await pilot.pause()
        assert app.view.landed is not None
        assert app.shown[-1].startswith("▌line 11999 ")
        app.view.find("no such line")
        assert app.view.stop_looking()
        assert share(app.view) == -1
        assert app.view.needle == ""
        app.view._work()
        await pilot.pause()
        assert app.told == [], "who has stopped it is told nothing more"
        assert not app.view.stop_looking()


@pytest.mark.usefixtures("little_by_little")
async def test_a_filter_shows_what_it_has_found_so_far_and_is_gone_when_stopped() -> None:
    buffer = _long()
    app = Viewer(buffer)
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        app.view.filter("7 ")
        await pilot.pause()
        assert 0 < app.view.matching < 1200
        assert app.shown[-1].startswith(" line ")
        buffer.append(b"new 7 after a cut\n", break_="truncated")
        app.look()
        await pilot.pause()
        finish(app.view)
        await pilot.pause()
        assert app.view.matching == 1201
        assert app.shown[-2:] == [
            " ── ▲ the log was cut to nothing here: it begins again ───",
            " new 7 after a cut",
        ]
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.shown[-1] == " new 7 after a cut"
        app.view.filter("/5 .*x/")
        await pilot.pause()
        assert app.view.stop_looking()
        await pilot.pause()
        assert app.view.filter_words == ""
        assert app.shown[-3].startswith(" line 11999 ")


@pytest.mark.usefixtures("little_by_little")
async def test_silences_are_looked_for_in_slices_too() -> None:
    buffer = _long()
    buffer.append(b"[2026-11-29 10:00:00] a\n[2026-11-29 18:00:00] b\n")
    app = Viewer(buffer)
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        app.view.next_silence()
        await pilot.pause()
        assert share(app.view) >= 0
        assert app.told == []
        finish(app.view)
        await pilot.pause()
        assert app.told[0].startswith("8:00:00 without a line before line 12,002")


async def test_a_silence_that_a_filter_hides_is_shown_all_the_same_and_that_is_said() -> None:
    buffer = LogBuffer()
    buffer.append(b"[2026-11-29 10:00:00] a\nundated\n[2026-11-29 18:00:00] b\nRuntimeError: c\n")
    app = Viewer(buffer)
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        app.view.filter("/ a$/")
        await pilot.pause()
        assert [line for line in app.shown if line] == [" [2026-11-29 10:00:00] a"]
        app.view.next_error()
        await pilot.pause()
        assert app.told == ["no error among the lines that match / a$/: 1 in the whole log"]
        app.view.next_silence()
        await pilot.pause()
        assert "▌18:00:00 b" in app.shown
        assert app.told[1].startswith("8:00:00 without a dated line before line 3 ")
        assert app.told[1].endswith("the filter was taken away for it")
        assert app.view.filter_words == ""


async def test_who_reads_a_line_stays_with_it_when_a_filter_comes_and_goes() -> None:
    app = Viewer(filled(1000))
    async with app.run_test(size=(30, 10)) as pilot:
        await pilot.pause()
        app.view.jump(505)
        await pilot.pause()
        app.view.filter("05")
        await pilot.pause()
        assert "▌line 505" in app.shown
        assert " line 504" not in app.shown
        app.view.filter("")
        await pilot.pause()
        assert "▌line 505" in app.shown
        assert " line 504" in app.shown
