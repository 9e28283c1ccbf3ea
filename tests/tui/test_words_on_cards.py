"""What the pane of the cards says, as text: memory, work, owner, what is odd and what is old."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.state import Owner
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.figures import one_line, speed_chart
from specdash.tui.widgets.gpuboxes import box_rows
from specdash.tui.widgets.gpulines import (
    card_row,
    column_titles,
    half_row,
    is_old,
    last_known_s,
    summary_rows,
)
from specdash.tui.widgets.gpus import GpuPane, slim_row
from specdash.tui.widgets.noserver import no_server
from specdash.tui.widgets.rail import Rail, truth_row
from tests.tui import panes, pieces, states
from tests.tui.words import STATES, WIDTHS, first, lines

# ---- GPUs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_no_card_is_wider_than_its_line(width: int) -> None:
    for make in STATES:
        for gpu in make().gpus:
            shown = card_row(gpu, pieces.NOW, width, ("TP3",))
            assert width_of(shown) <= width + 4 or width < 76
            assert width_of(half_row(gpu, pieces.NOW, width // 2, ("TP3",))) <= width // 2


@pytest.mark.parametrize("width", [76, 116, 196])
def test_titles_stand_above_their_columns(width: int) -> None:
    titles = text_of(column_titles(width))
    shown = text_of(card_row(states.serving().gpus[0], pieces.NOW, width))
    assert shown.index("TP0 4243") == titles.index("owner")
    assert shown.index("ok") == titles.index("state")
    for value, title in (("97%", "util"), ("412 W", "power"), ("58°", "temp")):
        assert shown.index(value) + len(value) == titles.index(title) + len(title)
    behind = text_of(card_row(states.serving().gpus[0], pieces.NOW, width, ("TP0",)))
    assert behind.index("TP0 4243") == titles.index("owner"), "an odd card has no other columns"
    assert behind.index("◀ lags") == titles.index("state")


def test_a_card_says_memory_in_gib_work_and_owner() -> None:
    shown = text_of(card_row(states.serving().gpus[0], pieces.NOW, 116))
    for part in ("122.0/140.4", "97%", "412 W", "58°", "TP0 4243", "1980 MHz", "ok"):
        assert part in shown


def test_how_far_cards_differ_is_told_of_those_of_one_server() -> None:
    pane = GpuPane()
    pane.state = states.serving()
    assert "spread 0.2" in text_of(pane.heading(116)[1])
    idle = pieces.gpu(8, 0.0)
    pane.state = msgspec.structs.replace(states.serving(), gpus=(*states.serving().gpus, idle))
    assert "spread 0.2" in text_of(pane.heading(116)[1]), "a card without a server is none of them"


def test_what_a_dead_process_forked_can_be_cleaned_like_memory_that_nobody_has() -> None:
    dead = Owner(pid=102, mib=76_000, label="pid 102", known=False, ended=True)
    card = msgspec.structs.replace(pieces.gpu(1, 74.2), owners=(dead,))
    held = no_server(pieces.picture(gpus=(card,)), acts=True)
    told = lines(held.rows(116))
    assert "GPU 1: 74.2 GiB are held by what pid 102, which has ended, forked" in told
    assert "looks who holds it, and ends that" in told
    assert "gpu.clean" in held.keys


def test_an_owner_without_room_loses_letters_of_its_name_and_no_digit_of_its_number() -> None:
    owner = Owner(pid=20_345, mib=9, label="EngineCore")
    shown = text_of(card_row(msgspec.structs.replace(pieces.gpu(0, 9.0), owners=(owner,)), pieces.NOW, 116))
    assert "EngineC… 20345  " in shown


def test_what_is_odd_about_a_card_is_said_and_stands_out() -> None:
    cards = states.sick_cards().gpus
    told = {
        1: ("ORPHAN 74.2 GiB", "orphan"),
        2: ("GPU is lost", "bad"),
        4: ("no answer for 41 s", "bad"),
        5: ("throttled: hw thermal", "warn"),
    }
    for width in (76, 116, 196):
        for index, (words, tone) in told.items():
            shown = card_row(cards[index], pieces.NOW, width)
            assert [span.tone for span in shown if words in span.text] == [tone], (width, index)
    assert "?" in text_of(card_row(cards[6], pieces.NOW, 76)), "not supported is no zero"
    assert "◀ lags" in text_of(card_row(states.watch_only().gpus[3], pieces.NOW, 116, ("TP3",)))
    old = msgspec.structs.replace(cards[0], at=pieces.NOW - 30)
    assert "30 s old" in text_of(card_row(old, pieces.NOW, 116))
    hidden = msgspec.structs.replace(cards[0], owners=(Owner(pid=7, mib=1, label="pid 7", known=False),))
    assert "owner not visible" in text_of(card_row(hidden, pieces.NOW, 196))
    dead = msgspec.structs.replace(hidden.owners[0], ended=True)
    for width in (76, 116, 196):
        line = text_of(card_row(msgspec.structs.replace(hidden, owners=(dead,)), pieces.NOW, width))
        assert "7's fork holds it" in line, width


def test_a_card_is_old_when_the_others_answer_or_no_sample_comes_and_never_by_a_fast_clock() -> None:
    state = states.serving()
    silent = msgspec.structs.replace(state.gpus[0], at=pieces.NOW - 30)
    some = msgspec.structs.replace(state, gpus=(silent, *state.gpus[1:]))
    assert [is_old(some, gpu) for gpu in some.gpus] == [True] + [False] * 7
    later = msgspec.structs.replace(state, now=pieces.NOW + 30)
    assert all(is_old(later, gpu) for gpu in later.gpus), "no sample for half a minute"
    assert last_known_s(later) == 31
    fast = msgspec.structs.replace(later, host=pieces.host(simulated=True))
    assert not any(is_old(fast, gpu) for gpu in fast.gpus), "its clock turns 30 times as fast"
    failed = msgspec.structs.replace(fast, gpu_error="NVML: Unknown Error")
    assert last_known_s(failed) == 31
    assert all(is_old(failed, gpu) for gpu in failed.gpus), "the driver says so"


def test_what_is_old_says_how_old_on_every_layout_and_no_chart_ends_now() -> None:
    lost = msgspec.structs.replace(states.serving(), link=states.lost().link)
    old_s = last_known_s(lost)
    assert old_s == 51
    for line in box_rows(lost.gpus, lost.now, 160, old_s=old_s)[6::8]:
        assert text_of(line).count("51 s old") == len(lost.gpus)
        assert {span.tone for span in line if "│" in span.text} == {"faint"}, "no frame stands out for it"
    odd = panes.odd_cards()
    assert "51 s old · ORPHAN" in text_of(box_rows(odd.gpus[1:2], odd.now, 60, old_s=51.0)[6])
    server = first(lost)
    late = msgspec.structs.replace(server, figures=msgspec.structs.replace(server.figures, at=lost.now - 51))
    assert text_of(one_line(late, 80, lost.now)).startswith(" ▲ 51 s ago")
    times = tuple(lost.now - 51 - 2 * at for at in reversed(range(len(server.tok_history))))
    axis = text_of(speed_chart(msgspec.structs.replace(late, tok_at=times), lost.now, 60)[-1])
    assert axis.endswith("51 s ago")
    assert "when last heard: " in text_of(truth_row(server, 116, with_meter=False, old=True))
    assert "when last heard" not in text_of(truth_row(server, 116, with_meter=False))


def test_how_long_nothing_has_moved_is_not_told_of_a_host_that_is_not_heard() -> None:
    rail = Rail()
    for state, told in ((states.capture(), True), (states.lost(), False)):
        rail.state, rail.server = state, first(state)
        rows = (truth_row(rail.server, 116, with_meter=True, old=state.old), rail.heading(116)[1])
        assert ["▱" in text_of(line) for line in rows] == [told, told]


def test_alike_cards_share_a_line_and_an_odd_one_never_does() -> None:
    state = states.no_server()
    told = [text_of(shown) for shown in summary_rows(state.gpus, state.now, 76)]
    assert len(told) == 3
    assert "ORPHAN 74.2 GiB" in told[1]
    assert told[2].startswith("2-7")
    assert "6 alike" in told[2]
    assert "32-37 W" in told[2]
    for width in (76, 96, 116, 196):
        odd, alike = (text_of(shown) for shown in summary_rows(state.gpus, state.now, width)[1:])
        assert odd.index("/95.6") == alike.index("/95.6"), "what is used stands in line"
        assert odd.index("36°") + 3 == alike.index("33-35°") + 6, "and so do the temperatures"
    assert odd.index(" W ") == alike.index(" W "), "and on a wide screen power"
    assert odd.index("% ") == alike.index("% "), "and work, too"
    whose = (Owner(pid=900, mib=1, label="python3 -c from multiprocessing.spawn", known=True),)
    wide = text_of(card_row(msgspec.structs.replace(state.gpus[0], owners=whose), state.now, 196))
    assert "python3 -c from multiprocessing.spawn 900 " in wide, "an owner is told whole, with its pid"
    (full,) = summary_rows(states.serving().gpus, state.now, 76)
    assert text_of(full).startswith("0-7 122.0/140.4 ")
    whose = (Owner(pid=7, mib=1, label="x" * 40),)
    long = [msgspec.structs.replace(one, owners=whose) for one in states.serving().gpus]
    (full,) = summary_rows(long, state.now, 76)
    assert width_of(full) <= 76
    assert text_of(full).endswith("… ok, 8 alike"), "a long name takes no other word's place"


def test_on_one_line_readings_that_are_all_old_are_said_to_be_old_once() -> None:
    state = states.stalled()
    shown = text_of(slim_row(state.gpus, state.now, 78, (), 14.0))
    assert "readings 14 s old" in shown
    assert "GPU 0" not in shown
