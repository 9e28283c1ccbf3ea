"""What the top of the screen says, as text: the header, the rail, the meter, the lamps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from specdash.monitor.state import HostState, Link
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.alerts import alert_row
from specdash.tui.widgets.figures import one_line
from specdash.tui.widgets.gpulines import (
    card_row,
)
from specdash.tui.widgets.header import header_row
from specdash.tui.widgets.linkpanels import link_panel, lost_row
from specdash.tui.widgets.rail import Rail, lamps_row, meter_row, rail_row, truth_row
from tests.tui import pieces, states
from tests.tui.words import STATES, WIDTHS, first, panel

# ---- header ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", STATES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_header_names_the_host_and_fits(make: Callable[[], HostState], width: int) -> None:
    state = make()
    server = state.servers[0] if state.servers else None
    shown = header_row(state, server, width)
    assert width_of(shown) <= width
    assert ("dgx2" if state.target == "dgx2" else "gpubox") in text_of(shown)


def test_the_header_says_state_and_how_long_and_what_kind_of_picture() -> None:
    state = states.serving()
    assert "● READY  up 6:12:40   LIVE" in text_of(header_row(state, first(state), 120))
    assert "○ READY" in text_of(header_row(states.idle(), first(states.idle()), 120)), "no token proved it"
    state = states.stalled()
    assert "✖ STALLED  8:02:51" in text_of(header_row(state, first(state), 80))
    state = states.crashed()
    assert "✖ CRASHED  0:48 ago" in text_of(header_row(state, first(state), 80))
    shown = text_of(header_row(states.watch_only(), first(states.watch_only()), 80, watch_only=True))
    assert "WATCH" in shown
    assert "LIVE" not in shown
    assert "FROZEN" in text_of(header_row(state, first(state), 120, frozen=True))
    made_up = pieces.picture(host=pieces.host(simulated=True))
    assert "SIM" in text_of(header_row(made_up, None, 80))


def test_over_a_link_that_is_not_there_the_state_is_what_it_was_and_nothing_goes_on_counting() -> None:
    for make, seen in (
        (states.lost, "capturing, last seen 51 s ago"),
        (states.stale, "READY, last seen 4 s ago"),
    ):
        state = make()
        shown = header_row(state, first(state), 120)
        assert seen in text_of(shown)
        assert "STALE" in text_of(shown)
        assert " up " not in text_of(shown)
        assert not [span for span in shown if span.tone == "ready"]
        later = msgspec.structs.replace(state, now=state.now + 9)
        assert seen.split(",")[0] in text_of(header_row(later, first(later), 80))


def test_a_host_that_was_known_stays_on_the_screen_when_it_refuses_us() -> None:
    known = msgspec.structs.replace(states.serving(), link=states.refused().link)
    told = link_panel(known)
    assert told is not None
    assert not told.whole
    assert "what is below is old" in "\n".join(map(text_of, told.rows(78)))
    assert "READY, as last seen" in text_of(header_row(known, first(known), 120))


def test_what_is_tried_again_by_itself_is_amber_everywhere_and_what_a_person_must_mend_is_red() -> None:
    for state, tone, glyph in (
        (states.never_reached(), "warn", "▲"),
        (states.refused(), "bad", "✖"),
    ):
        shown = link_panel(state)
        assert shown is not None
        assert (shown.title[0].tone, shown.title[0].text[0]) == (tone, glyph)
        assert tone in {span.tone for span in header_row(state, None, 120)}
        assert not ({"bad", "warn", "alarm"} - {tone}) & {span.tone for span in header_row(state, None, 120)}
    lost = states.lost()
    tones = {span.tone for span in (*lost_row(lost, 120), *header_row(lost, first(lost), 120))}
    assert "warn" in tones
    assert not tones & {"bad", "alarm"}


def test_each_way_of_not_getting_there_has_its_own_words_and_its_remedy() -> None:
    def told(key: str, reason: str, hint: str | None, state: str = "refused") -> str:
        link = Link(
            state=state,  # type: ignore[arg-type]
            since=pieces.NOW - 41,
            key=key,
            hint=hint,
            reason=f"root@gpubox: {reason} ({hint})" if hint else f"root@gpubox: {reason}",
        )
        return panel(HostState(target="root@gpubox", now=pieces.NOW, link=link))

    changed = told("ssh_host_key_changed", "THE HOST KEY HAS CHANGED", "someone may be listening")
    assert changed.startswith(
        "✖ the host key of gpubox is another one than before\nTHE HOST KEY HAS CHANGED\n"
    )
    assert "→ someone may be listening" in changed
    assert "Nothing was sent to it" in changed
    denied = told("ssh_auth", "root may not log in", "is root right?")
    assert "✖ gpubox does not let us in" in denied
    assert "Nothing was sent" not in denied
    nowhere = told("ssh_no_address", "the name does not resolve", "did you mean gpubox?", "lost")
    assert "▲ there is no address for gpubox" in nowhere
    assert "→ did you mean gpubox?" in nowhere
    assert "try 1 is under way" in nowhere
    closed = told("ssh_port_refused", "nothing listens on 10.0.0.7 port 22", None, "lost")
    assert closed.startswith("▲ gpubox refuses the connection\nnothing listens on 10.0.0.7 port 22\n")
    for words in (changed, denied, nowhere, closed):
        assert "r   tries" in words


# ---- rail, truth, meter, lamps -----------------------------------------------------------------------


def test_the_rail_tells_times_and_counters_as_far_as_the_width_goes() -> None:
    server = first(states.loading())
    assert "✓ dist 0:04" in text_of(rail_row(server, 116))
    assert "◐ weights 37/64 ▰▰▰▰▰▰▰▱▱▱▱▱ 1:33" in text_of(rail_row(server, 116))
    narrow = text_of(rail_row(server, 60))
    assert "37/64" in narrow
    assert "○ serving" in narrow
    for width in WIDTHS:
        assert width_of(rail_row(server, width)) <= width


def test_what_is_at_work_in_a_stalled_server_is_shown_as_failed() -> None:
    assert "✖ graphs 4/8" in text_of(rail_row(first(states.stalled()), 116))
    assert "◐ graphs 4/8" in text_of(rail_row(first(states.capture()), 116))


def test_a_server_that_was_stopped_in_its_start_tells_how_far_it_got() -> None:
    server = first(states.capture())
    rail = [
        msgspec.structs.replace(item, mark="reached") if item.mark == "active" else item
        for item in server.rail
    ]
    told = rail_row(msgspec.structs.replace(server, state="stopped", rail=tuple(rail)), 116)
    assert "■ reached graphs 4/8" in text_of(told)
    assert "◐" not in text_of(told)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("read", "bytes read 4 s ago "),
        ("compilers", "compiler at work 4 s ago "),
        ("bar", "progress 4 s ago "),
        ("look", "no token since we look, 4 s "),
    ],
)
def test_the_meter_says_whose_age_it_is(by: str, words: str) -> None:
    server = first(states.capture())
    told = msgspec.structs.replace(server, verdict=msgspec.structs.replace(server.verdict, by=by))
    assert text_of(meter_row(told, 4)).startswith(words)


def test_the_meter_is_the_age_of_progress_against_its_limit() -> None:
    assert text_of(meter_row(first(states.capture()), 4)) == "progress 4 s ago ▰▱▱▱ limit 2:00"
    assert text_of(meter_row(first(states.capture()), 4, words=False)) == "quiet ▰▱▱▱ 0:04/2:00"
    late = first(states.capture())
    late = msgspec.structs.replace(late, verdict=msgspec.structs.replace(late.verdict, since_s=27554.0))
    assert text_of(meter_row(late, 4, words=False)).endswith("7:39:14/2:00, looking again")
    assert text_of(meter_row(late, 4)).endswith("limit 2:00, looking again")
    over = meter_row(first(states.stalled()), 4)
    assert "progress 8:02:51 ago ▰▰▰▰ limit 2:00" in text_of(over)
    assert {span.tone for span in over if "▰" in span.text} == {"bad"}
    half = msgspec.structs.replace(
        first(states.capture()),
        verdict=msgspec.structs.replace(first(states.capture()).verdict, since_s=70),
    )
    assert {span.tone for span in meter_row(half, 4) if "▰" in span.text} == {"warn"}


def test_a_serving_host_is_calm_no_meter_no_amber_and_green_only_for_ready() -> None:
    state = states.serving()
    server = first(state)
    rows = [
        header_row(state, server, 120),
        rail_row(server, 116),
        truth_row(server, 116, with_meter=True),
        lamps_row(state, server, 116),
        *[card_row(gpu, state.now, 116) for gpu in state.gpus],
        alert_row(state, 120),
        one_line(server, 76),
    ]
    assert meter_row(server, 8) == ()
    tones = {(span.tone, span.text.strip()) for shown in rows for span in shown}
    loud = {(tone, text) for tone, text in tones if tone in ("warn", "bad", "alarm", "orphan", "ready")}
    assert loud == {("ready", "● READY"), ("ready", "● serving")}


def test_the_sentence_of_truth_ends_with_a_whole_part_where_there_is_little_room() -> None:
    truth = "last step 17:24 ago · last line 17:24 ago · port refused 3 s ago"
    server = msgspec.structs.replace(first(states.capture()), truth=truth)
    shown = text_of(truth_row(server, 78, with_meter=True))
    assert shown.startswith("last step 17:24 ago · last line 17:24 ago  ")
    assert shown.endswith("/2:00")
    assert "quiet" in shown
    known = msgspec.structs.replace(server, truth=f"{truth[:30]} · a b c d e f g h i")
    assert "g h i  " in text_of(truth_row(known, 70, with_meter=True)), "no part gives way to a name"
    assert text_of(truth_row(server, 12, with_meter=False)) == "last step…  "
    assert text_of(truth_row(server, len(truth), with_meter=False)) == truth
    crashed = msgspec.structs.replace(
        server, truth="crashed 46 s ago · the draft is shorter than the target's"
    )
    assert (
        text_of(truth_row(crashed, 50, with_meter=False))
        == "crashed 46 s ago · the draft is shorter than the… "
    )


def test_every_lamp_of_readiness_is_shown_with_what_it_says() -> None:
    state = states.serving()
    wide = text_of(lamps_row(state, first(state), 196))
    assert "● health 200 12 s ago" in wide
    assert "● token one came back" in wide
    tight = text_of(lamps_row(state, first(state), 116))
    assert [lamp.name in tight for lamp in first(state).lamps] == [True] * 5
    assert "· token not asked" in text_of(lamps_row(states.idle(), first(states.idle()), 116))


def test_no_lamp_is_left_out_for_want_of_room_and_only_the_longest_words_are_cut() -> None:
    state = states.serving()
    values = {"models": "target-1t", "token": "1 counted since it started"}
    lamps = tuple(
        msgspec.structs.replace(lamp, value=values.get(lamp.name, lamp.value)) for lamp in first(state).lamps
    )
    server = msgspec.structs.replace(first(state), lamps=lamps)
    for width in range(60, 200):
        told = text_of(lamps_row(state, server, width))
        assert [lamp.name in told for lamp in lamps] == [True] * 5
        assert width_of(lamps_row(state, server, width)) <= width
    for width in range(96, 200):
        assert "● token 1 counted since it started" in text_of(lamps_row(state, server, width)), "it proves"


def test_a_start_says_when_it_is_ready_by_earlier_ones_while_that_is_known() -> None:
    rail = Rail()
    rail.state = states.loading()
    known = msgspec.structs.replace(rail.state.servers[0], eta_s=226.0, starts_known=6)
    rail.server = known
    assert "ready in about 3:46, by 6 starts" in text_of(rail.heading(116)[1])
    for change in ({"eta_s": None}, {"gone_at": pieces.NOW}):
        rail.server = msgspec.structs.replace(known, **change)
        assert "ready in" not in text_of(rail.heading(116)[1])
    rail.server, rail.state = known, msgspec.structs.replace(rail.state, link=states.lost().link)
    assert "ready in" not in text_of(rail.heading(116)[1]), "nobody knows how far it is by now"
