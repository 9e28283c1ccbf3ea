"""Somebody who follows the demo's bottom line alone comes to the comparison."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import HostState
from specdash.tui.paint import text_of
from specdash.tui.story import Scene, next_step
from tests.tui import states

OPENING = "this start will hang"
BOTH = ("eagle3-3", "baseline")


def line(state: HostState, **more: object) -> str:
    server = state.servers[0] if state.servers else None
    return text_of(next_step(Scene(state=state, server=server, opening=OPENING, **more)))  # type: ignore[arg-type]


def serving(speculation: str | None = "EAGLE3 3 steps", *, proven: bool = True) -> HostState:
    state = states.serving(token=proven)
    server = msgspec.structs.replace(state.servers[0], speculation=speculation)
    return msgspec.structs.replace(state, servers=(server,), alerts=())


def test_at_first_it_says_what_there_is_to_see_and_later_that_there_is_nothing_to_press() -> None:
    assert line(states.capture()) == OPENING
    assert "nothing to press" in line(states.capture(), acted=True)


def test_nothing_is_said_before_the_host_has_answered_and_beside_an_alarm_that_names_its_key() -> None:
    assert line(HostState(target="gpubox")) == ""
    assert line(states.stalled()) == ""


def test_an_acknowledged_stall_still_names_the_key_that_ends_it() -> None:
    assert "K ends it" in line(msgspec.structs.replace(states.stalled(), alerts=()))


def test_a_server_that_is_gone_is_started_again_once_its_memory_is_free() -> None:
    gone = msgspec.structs.replace(states.stalled(), servers=(), alerts=())
    held = msgspec.structs.replace(gone.gpus[0], orphan_mib=77_000)
    assert "R starts it again" in line(gone)
    assert "C ends what still holds" in line(msgspec.structs.replace(gone, gpus=(held,)))


def test_from_ready_on_each_key_leads_to_the_comparison() -> None:
    story = [
        line(serving(proven=False), variants=BOTH),
        line(serving(), variants=BOTH),
        line(serving(), variants=BOTH, measured=frozenset({"eagle3-3"})),
        line(serving(None), variants=BOTH, measured=frozenset({"eagle3-3"})),
        line(serving(None), variants=BOTH, measured=frozenset(BOTH)),
        line(serving(None), variants=BOTH, measured=frozenset(BOTH), compared=True),
    ]
    keys = [words.removeprefix("▸ ")[0] for words in story]
    assert keys == ["T", "B", "R", "B", "5", "q"]
    assert "minute" not in story[1], "the plan says how long it takes, as far as that is known"
    assert "button baseline" in story[2]
    assert "measures baseline" in story[3]
    assert "baseline and eagle3-3" in story[4]


def test_runs_that_do_not_count_are_no_measurement() -> None:
    told = line(serving(), variants=BOTH, void=frozenset({"eagle3-3"}))
    assert told.startswith("▸ B measures again: no run counts")
    assert len(told) < 79


def test_every_line_fits_into_eighty_columns_and_made_up_figures_say_so() -> None:
    scenes = [
        line(serving(), variants=BOTH),
        line(serving(), variants=BOTH, measured=frozenset({"eagle3-3"})),
        line(serving(None), variants=BOTH, measured=frozenset(BOTH)),
        line(serving(None), variants=BOTH, measured=frozenset(BOTH), compared=True),
        line(states.capture(), acted=True),
    ]
    assert max(map(len, scenes)) < 79
    assert "simulated" in scenes[0]


def test_over_the_comparison_q_closes_that_and_then_quits() -> None:
    """The sheet says the same of q, and the last line does."""
    at_the_end: dict[str, object] = {"variants": BOTH, "measured": frozenset(BOTH), "compared": True}
    assert "q closes this" in line(serving(None), **at_the_end, covered=True)
    assert "q quits. That was the story" in line(serving(None), **at_the_end)
