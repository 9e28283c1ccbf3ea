from __future__ import annotations

from rich.cells import cell_len
from textual.geometry import Offset
from textual.selection import Selection

from specdash.logs.buffer import LogBuffer
from specdash.logs.lens import LogLens
from specdash.logs.pattern import searched
from specdash.tui.paint import Span
from specdash.tui.widgets.logline import hits, time_text
from specdash.tui.widgets.logpaint import ends
from specdash.tui.widgets.logreader import LogReader
from tests.tui.logviewer import Viewer, filled, numbered
from tests.tui.pieces import NOW
from tests.tui.reading import SIZES


async def test_a_view_that_is_held_stays_where_it_is_when_its_file_cannot_be_read_for_a_moment() -> None:
    app = Viewer(filled())
    async with app.run_test(size=(30, 10)) as pilot:
        app.view.jump(5)
        await pilot.pause()
        shown = app.shown
        for words in ("no answer from the file system for 10 s", "no answer from the file system for 20 s"):
            app.view.look(app.buffer, NOW, ((Span(words),),))
            await pilot.pause()
        assert (app.view.follow, app.view.current, app.shown) == (False, 5, shown)


async def test_it_follows_the_newest_line_until_scrolled_up_and_again_at_the_end() -> None:
    app = Viewer(filled())
    async with app.run_test(size=(30, 10)) as pilot:
        await pilot.pause()
        assert app.shown[-1] == " line 100"
        app.buffer.append(b"line 101\n")
        app.look()
        await pilot.pause()
        assert app.shown[-1] == " line 101"
        app.view.move(-1)
        await pilot.pause()
        app.buffer.append(b"line 102\nline 103\n")
        app.look()
        await pilot.pause()
        assert app.shown[-1] == " line 100", "held"
        assert app.view.waiting == 2
        app.view.move(99)
        await pilot.pause()
        assert app.view.follow
        assert app.view.waiting == 0
        assert app.shown[-1] == " line 103"


async def test_the_mouse_wheel_holds_it_too() -> None:
    app = Viewer(filled())
    async with app.run_test(size=(30, 10)) as pilot:
        await pilot.pause()
        app.view._scroll_up_for_pointer(animate=False)
        await pilot.pause()
        assert not app.view.follow


async def test_a_bar_is_one_row_that_moves_in_place() -> None:
    app = Viewer(filled(3))
    async with app.run_test(size=(40, 6)) as pilot:
        await pilot.pause()
        for percent in (10, 50, 90):
            app.buffer.append(b"\rLoading %d%%" % percent)
            app.look()
            await pilot.pause()
            assert [line for line in app.shown if line] == [
                " line 1",
                " line 2",
                " line 3",
                f" Loading {percent}%",
            ]


async def test_a_rule_put_above_what_is_read_does_not_move_it() -> None:
    app = Viewer(filled())
    async with app.run_test(size=(30, 10)) as pilot:
        await pilot.pause()
        app.view.jump(50)
        await pilot.pause()
        before = app.shown
        app.buffer.rule(10, "phase", "weights")
        app.look()
        await pilot.pause()
        assert app.shown == before
        app.view.next_phase(back=True)
        await pilot.pause()
        at = app.shown.index("▌line 10")
        assert app.shown[at - 1].startswith(" ── ▸ weights ──")
        app.view.next_phase()
        app.view.jump(50)
        app.view.next_phase(back=True)
        await pilot.pause()
        assert app.told == ["no phase or mark below", ""], "what was said of one jump ends with the next"


async def test_what_falls_out_of_memory_does_not_move_what_is_read() -> None:
    buffer = LogBuffer(budget=600_000)
    for start in range(1, 40_001, 4_000):  # as frames bring it
        buffer.append(numbered(range(start, start + 4_000)))
    app = Viewer(buffer)
    async with app.run_test(size=(30, 10)) as pilot:
        await pilot.pause()
        app.view.jump(39_000)
        await pilot.pause()
        before = app.shown
        buffer.append(numbered(range(40_001, 60_001)))
        app.look()
        await pilot.pause()
        assert buffer.first_line > 1
        assert app.shown == before


async def test_find_goes_from_the_newest_back_then_on_and_round_and_says_which_hit_it_is() -> None:
    buffer = filled(50)
    buffer.append(b"needle one\n" + numbered(range(51, 60)) + b"a Needle two, needle\n")
    app = Viewer(buffer)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        app.view.find("needle")
        await pilot.pause()
        assert "▌a Needle two, needle" in app.shown
        assert not app.view.follow
        assert app.view.landed is not None
        assert (app.view.landed.number, app.view.landed.many) == (2, 2)
        assert app.told == []
        app.view.find_next()
        await pilot.pause()
        assert "▌needle one" in app.shown, "round the end"
        assert app.told == ["hit 1 of 2, begun again from the top"]
        app.view.find_next(back=True)
        await pilot.pause()
        assert app.told[1:] == ["hit 2 of 2, begun again from the end"]
        buffer.append(b"third needle")
        app.look()
        app.view.find_next()
        await pilot.pause()
        assert app.view.landed is not None
        assert (app.view.landed.number, app.view.landed.many) == (3, 3), "the unfinished line counts, too"
        app.view.find("nothing like it")
        await pilot.pause()
        assert app.told[2:] == ["", "not found: nothing like it"], "a hit takes away what was said before it"
        assert "▌third needle" in app.shown, "it stays where it was"


async def test_a_hit_that_the_width_cuts_off_is_brought_into_sight_until_the_text_is_moved() -> None:
    buffer = filled(5)
    buffer.append(b"begins " + b"and goes on " * 20 + b"to a needle\n")
    app = Viewer(buffer)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        assert any(line.startswith(" begins and goes on and") for line in app.shown)
        app.view.find("needle")
        await pilot.pause()
        assert any(line.startswith("▌…") and line.endswith("to a needle") for line in app.shown)
        app.view.sideways(8)
        await pilot.pause()
        assert not any("needle" in line for line in app.shown), (
            "whoever looks sideways sees the line as it is"
        )
        app.view.sideways(-8)
        app.view.find("")
        await pilot.pause()
        assert any(line.startswith("▌begins and goes on and") for line in app.shown)


async def test_an_error_of_an_earlier_process_is_left_to_whoever_asks_for_the_one_before() -> None:
    buffer = LogBuffer()
    buffer.append(b"RuntimeError: of the last one\n" + numbered(range(40)))
    buffer.begin(20)
    app = Viewer(buffer)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        app.view.next_error()
        await pilot.pause()
        assert app.told == ["no error since this process began; 1 error before: E goes there"]
        assert app.view.follow
        app.view.next_error(back=True)
        await pilot.pause()
        assert "▌RuntimeError: of the last one" in app.shown


async def test_errors_marks_and_silences_are_jumped_to() -> None:
    buffer = LogBuffer()
    buffer.append(b"[2026-11-29 10:00:00] a\n[2026-11-29 18:00:00] b\n")
    buffer.append(b"RuntimeError: boom\n" + numbered(range(40)))
    app = Viewer(buffer)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        app.view.next_error()
        await pilot.pause()
        assert "▌RuntimeError: boom" in app.shown
        app.view.next_silence()
        await pilot.pause()
        assert app.told == [
            "8:00:00 without a line before line 2   1 of 1, longest first, by the log's own times"
        ]
        assert "▌18:00:00 b" in app.shown
        assert app.view.toggle_mark() is True
        app.view.sync()
        await pilot.pause()
        assert any("◆ marked at line 2" in line for line in app.shown)
        assert app.view.toggle_mark() is False


async def test_wrapped_lines_show_all_of_a_long_line_and_the_end_stays_at_the_bottom() -> None:
    buffer = filled(20)
    long = "".join(f"word{number:03d} " for number in range(20))
    buffer.append(long.encode() + b"\n")
    app = Viewer(buffer)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        assert "word019" not in "".join(app.shown)
        app.view.toggle_wrap()
        await pilot.pause()
        text = "".join(line.ljust(40)[:39] for line in app.shown)
        assert "word019" in "".join(app.shown)
        assert "word000" in text
        app.view.to_top()
        await pilot.pause()
        assert app.shown[0] == " line 1"
        app.view.move(99)
        await pilot.pause()
        assert "word019" in "".join(app.shown)
        app.view.toggle_wrap()
        await pilot.pause()
        assert "word019" not in "".join(app.shown)


async def test_a_line_that_the_width_cuts_off_shows_that_it_goes_on_and_no_other_does() -> None:
    app = Viewer(LogBuffer())
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        room = app.view.cells - 1  # the gutter
        app.buffer.append(b"%s\n%s\n%s\n" % (b"a" * room, b"b" * (room + 1), "漢".encode() * room))
        app.look()
        await pilot.pause()
        fits, cut, wide = app.shown[:3]
        assert (fits, cut) == (" " + "a" * room, " " + "b" * (room - 1) + "…")
        assert (wide.rstrip("…").strip(" 漢"), cell_len(wide)) == ("", app.view.cells)
        app.view.sideways(8)
        await pilot.pause()
        assert app.shown[1] == "b" * (room + 1 - 7), "its end is in sight"
        app.view.sideways(-8)
        app.view.toggle_wrap()
        await pilot.pause()
        assert "…" not in "".join(app.shown)


async def test_sideways_shows_the_rest_of_a_line() -> None:
    buffer = LogBuffer()
    buffer.append(b"0123456789" * 10 + b"END\n")
    app = Viewer(buffer)
    async with app.run_test(size=(20, 3)) as pilot:
        await pilot.pause()
        for _ in range(12):
            app.view.sideways(8)
        await pilot.pause()
        assert app.shown[0].endswith("END")


async def test_times_are_short_printed_of_arrival_or_age() -> None:
    buffer = LogBuffer()
    buffer.append(b"[2026-11-29 10:00:00 TP0] old\n", break_="start")
    buffer.append(b"[2026-11-29 10:00:01 TP0] new\n", at=NOW - 65)
    app = Viewer(buffer)
    async with app.run_test(size=(50, 3)) as pilot:
        await pilot.pause()
        assert app.shown[:2] == [" 10:00:00 TP0 old", " 10:00:01 TP0 new"]
        assert app.view.next_times() == "printed"
        await pilot.pause()
        assert app.shown[1] == " [2026-11-29 10:00:01 TP0] new"
        app.view.next_times()
        await pilot.pause()
        assert app.shown[0] == "          TP0 old"
        assert app.shown[1].endswith(" TP0 new")
        assert app.shown[1][3] == app.shown[1][6] == ":"
        app.view.next_times()
        await pilot.pause()
        assert app.shown[1] == "     1:05 TP0 new"


async def test_the_mouse_selects_text_without_the_gutter() -> None:
    app = Viewer(filled(3))
    async with app.run_test(size=(30, 5)) as pilot:
        await pilot.pause()
        await pilot.mouse_down("#log", offset=(0, 0))
        await pilot.hover("#log", offset=(4, 1))
        await pilot.mouse_up("#log", offset=(4, 1))
        await pilot.pause()
        assert app.screen.get_selected_text() == "line 1\nline"
        style = app.screen.get_component_rich_style("screen--selection")
        marked = [
            "".join(
                segment.text for segment in strip if segment.style and segment.style.bgcolor == style.bgcolor
            )
            for strip in app.screen._compositor.render_strips()
        ]
        assert marked[:3] == [" line 1", " line", ""], "and shows it"
        assert app.view.chosen_text() == "line 1\nline 2\nline 3"


def test_a_selection_reaches_beyond_the_screen_by_line_and_column() -> None:
    view = LogReader()
    view.lens = LogLens(filled(1000))
    chosen = view.get_selection(Selection(Offset(6, 9), Offset(5, 799)))
    assert chosen is not None
    lines = chosen[0].split("\n")
    assert len(lines) == 791
    assert (lines[0], lines[1], lines[-1]) == ("10", "line 11", "line")


async def test_hostile_text_stays_text_and_every_line_keeps_its_width() -> None:
    buffer = LogBuffer()
    hostile = [
        b"\x1b[2J\x1b[31mred\x1b[0m \x1b]52;c;aGFjaw==\x07 \x9b31m",
        b"[red]markup[/red] [/b] [/] [@click=app.quit]x[/]",
        "‮gnp.exe ‏ bidi ﻿".encode(),
        "漢字 e\u0301 👩‍👩‍👧 🚀 ｗｉｄｅ".encode() * 3,
        b"\xff\xfe bad bytes \x00\x08\x7f",
        b"x" * 12_000 + b" ERROR",
        b"\t\ttabs\x0b\x0c",
    ]
    buffer.append(b"\n".join(hostile) + b"\n")
    app = Viewer(buffer)
    for size in SIZES:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            strips = app.screen._compositor.render_strips()
            for strip in strips:
                assert cell_len(strip.text) == size[0]
                assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in strip.text)
            text = "\n".join(strip.text for strip in strips)
            assert "[red]markup[/red] [/b]" in text
            assert "‮" not in text
            app.view.toggle_wrap()
            await pilot.pause()
            assert {cell_len(strip.text) for strip in app.screen._compositor.render_strips()} == {size[0]}
        app = Viewer(buffer)


def test_hits_follow_the_rule_for_capitals_and_survive_odd_letters() -> None:
    def marked(text: str, words: str) -> list[str]:
        return [span.text for span in hits(text, searched(words).shape, "plain") if span.tone == "hit"]

    assert marked("aXbxc", "x") == ["X", "x"]
    assert marked("aXbxc", "X") == ["X"]
    assert marked("a.b", ".") == ["."]
    assert marked("a1b22", r"/\d+/") == ["1", "22"]
    assert "".join(span.text for span in hits("İx and x", searched("x").shape, "plain")) == "İx and x"


def test_what_was_there_before_us_has_no_time_of_arrival() -> None:
    assert time_text("arrival", None, NOW).strip() == ""
    assert len(time_text("arrival", NOW, NOW)) == len(time_text("age", NOW - 3, NOW)) == 9


def test_a_wrapped_line_breaks_behind_a_word_where_one_ends_near_the_edge() -> None:
    assert ends("one two three four", 14) == [14, 18]
    assert ends("one two three, four", 16) == [15, 19]
    assert ends("abcdefghij" * 2, 8) == [8, 16, 20], "no word ends there"
    assert ends("", 8) == [0]
