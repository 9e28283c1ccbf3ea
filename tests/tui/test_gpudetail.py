"""All about one card: memory by owner over time, health in words, owners with both of their numbers."""

import msgspec
import pytest

from specdash.monitor.samples import CardHealth
from specdash.monitor.state import HostState
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.gpudetail import gpu_rows
from specdash.tui.widgets.gpuhealth import health_rows
from tests.tui import panes, pieces, states


def told(state: HostState, index: int = 0, width: int = 116) -> list[str]:
    return [text_of(line) for line in gpu_rows(state, state.gpus[index], state.servers[0], width)]


def health(state: HostState, health: CardHealth | None = None, width: int = 116) -> str:
    if health is not None:
        state = msgspec.structs.replace(state, health={0: (state.now - 8, health)})
    return "\n".join(text_of(line) for line in health_rows(state, state.gpus[0], width))


def test_memory_over_time_has_a_scale_and_a_strip_for_each_owner() -> None:
    text = told(panes.looked_into())
    assert text[2].startswith("in use      140┤")
    axis = next(line for line in text if "┼" in line)
    assert "─ 1:59 ago ─" in axis
    assert " GiB " in axis
    assert [line[:14].strip() for line in text[8:12]] == ["TP0 4243", "", "jupyter 777", ""]
    assert [line.rsplit("│", 1)[1].split()[-2:] for line in (text[9], text[11])] == [
        ["90.0", "GiB"],
        ["30.0", "GiB"],
    ]


def test_the_chart_of_a_card_that_is_silent_ends_when_it_last_answered() -> None:
    axis = next(line for line in told(states.sick_cards(), 2) if "┼" in line)
    assert axis.endswith(" 41 s ago")
    well = next(line for line in told(states.sick_cards(), 3) if "┼" in line)
    assert well.endswith(" now")


def test_a_single_owner_needs_no_strip_and_what_is_nobodys_has_one() -> None:
    assert not any(line.startswith("TP6") and "⣿" in line for line in told(panes.odd_cards(), 6))
    orphaned = told(panes.odd_cards(), 1)
    at = next(at for at, line in enumerate(orphaned) if line.startswith("nobody"))
    assert orphaned[at + 1].endswith(" 74.2 GiB")


def test_each_owner_has_both_pids_and_its_container() -> None:
    line = next(line for line in told(panes.looked_into()) if line.startswith("TP0 ") and "docker" in line)
    assert line.split() == ["TP0", "90.0", "4243", "17", "R", "—", "docker:0123456789ab", "sglang:30000"]
    assert "  in docker:0123456789ab" in told(panes.looked_into(), width=76)


def test_what_is_wrong_with_the_card_is_said_in_words_with_its_age() -> None:
    text = health(panes.looked_into())
    assert "on: 3 corrected, 1 uncorrected since the driver was loaded, 12 and 1 ever" in text
    assert "2 rows of memory replaced by spare ones, more at the next reset" in text
    assert "17 of 18 links up, 5 replays and recoveries" in text
    assert "3,201 of 3,201 MHz, performance state P0" in text
    assert "read 8 s ago" in text
    tones = {
        span.tone
        for line in health_rows(panes.looked_into(), panes.looked_into().gpus[0], 116)
        for span in line
    }
    assert {"bad", "warn"} <= tones


def test_reports_of_the_kernel_are_those_of_this_card_newest_first() -> None:
    lines = [line for line in health(panes.looked_into()).splitlines() if " Xid " in line]
    assert [line.partition(": Xid ")[2].split(",")[0] for line in lines] == ["94", "63"]
    assert lines[0].endswith(", 1:01 ago: Xid 94, pid=4243, Contained ECC error")
    narrow = [
        text_of(line)[:9].strip()
        for line in health_rows(panes.looked_into(), panes.looked_into().gpus[0], 50)
    ]
    assert narrow.count("Xid") == 1, "a report that takes two lines has its name once"
    denied = msgspec.structs.replace(panes.looked_into(), kernel_denied="needs root")
    assert "not known: the kernel's log cannot be read (needs root)" in health(denied)
    assert "none in what is kept" in health(states.serving())


def test_a_healthy_card_says_so_without_a_colour() -> None:
    well = CardHealth(
        index=0, ecc=True, ecc_pending=True, corrected=0, uncorrected=0, corrected_ever=0, uncorrected_ever=0,
        rows_remapped=0, nvlinks=18, nvlinks_up=18, nvlink_errors=0,
    )  # fmt: skip
    state = msgspec.structs.replace(states.serving(), health={0: (pieces.NOW, well)})
    assert {span.tone for line in health_rows(state, state.gpus[0], 116) for span in line} == {"plain", "dim"}


def test_what_could_not_be_read_says_why_and_is_no_zero() -> None:
    missing = {
        "ecc": "not supported by this card",
        "nvlink": "not supported by this card",
        "remapped rows": "no permission",
    }
    text = health(states.serving(), CardHealth(index=0, missing=missing))
    assert "ECC      not supported by this card" in text
    assert "rows     no permission" in text
    assert "0" not in text.replace("8 s ago", "")
    assert "no answer for 4 s" in health(states.serving(), CardHealth(index=0, error="no answer for 4 s"))
    assert "not read yet" in health(states.serving())
    uncounted = CardHealth(index=0, ecc=False, ecc_pending=True, nvlinks=4, nvlinks_up=4)
    text = health(states.serving(), uncounted)
    assert "off, on after the next reset" in text
    assert "4 of 4 links up, errors not counted by this card" in text


@pytest.mark.parametrize("width", [50, 76, 116, 196])
def test_nothing_is_wider_than_the_sheet(width: int) -> None:
    for state in (panes.looked_into(), panes.odd_cards(), states.sick_cards()):
        for gpu in state.gpus:
            server = state.servers[0] if state.servers else None
            assert all(width_of(line) <= width for line in gpu_rows(state, gpu, server, width))
