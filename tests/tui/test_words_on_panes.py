"""What each pane says, as text: no terminal, no app."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from specdash.monitor.documents import Diagnosis, Reason
from specdash.monitor.state import HostState, Link, Owner, Server
from specdash.tui.actions import ACTIONS
from specdash.tui.paint import Row, text_of, width_of
from specdash.tui.widgets.alerts import alert_row
from specdash.tui.widgets.choices import Choice, choices, strip_rows
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
from specdash.tui.widgets.header import header_row
from specdash.tui.widgets.linkpanels import link_panel, lost_row, over_row
from specdash.tui.widgets.rail import lamps_row, meter_row, rail_row, truth_row
from specdash.tui.widgets.sentence import sentence_rows
from specdash.tui.widgets.situation import panel_for
from specdash.tui.widgets.steps import step_rows
from tests.tui import panes, pieces, states

STATES: list[Callable[[], HostState]] = [
    states.connecting, states.refused, states.never_reached, states.no_server, states.no_driver,
    states.loading,
    states.capture, states.serving, states.idle, states.stalled, states.crashed, states.lost, states.stale,
    states.watch_only, states.sick_cards, states.two_servers, states.degraded,
]  # fmt: skip
WIDTHS = (60, 76, 80, 100, 116, 120, 160, 196, 200)


def first(state: HostState) -> Server:
    return state.servers[0]


def lines(rows: list[Row]) -> str:
    return "\n".join(map(text_of, rows))


def panel(state: HostState, width: int = 76) -> str:
    shown = link_panel(state) or panel_for(state, state.servers[0] if state.servers else None)
    assert shown is not None
    return "\n".join([text_of(shown.title), lines(shown.rows(width)), text_of(shown.below)])


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
    assert "try 1 now" in nowhere
    for words in (changed, denied, nowhere):
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
    assert text_of(meter_row(first(states.capture()), 4, words=False)) == "▰▱▱▱ 0:04/2:00"
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


def test_every_lamp_of_readiness_is_shown_with_what_it_says() -> None:
    state = states.serving()
    wide = text_of(lamps_row(state, first(state), 196))
    assert "● health 200 12 s ago" in wide
    assert "● token one came back" in wide
    tight = text_of(lamps_row(state, first(state), 116))
    assert [lamp.name in tight for lamp in first(state).lamps] == [True] * 5
    assert "· token not asked" in text_of(lamps_row(states.idle(), first(states.idle()), 116))


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
    assert shown.index("97%") + 3 == titles.index("util") + 4


def test_a_card_says_memory_in_gib_work_and_owner() -> None:
    shown = text_of(card_row(states.serving().gpus[0], pieces.NOW, 116))
    for part in ("122.0/140.4", "97%", "412 W", "58°", "TP0 4243", "1980 MHz", "ok"):
        assert part in shown


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
    (full,) = summary_rows(states.serving().gpus, state.now, 76)
    assert text_of(full).startswith("0-7 122.0/140.4 ")
    whose = (Owner(pid=7, mib=1, label="x" * 40),)
    long = [msgspec.structs.replace(one, owners=whose) for one in states.serving().gpus]
    (full,) = summary_rows(long, state.now, 76)
    assert width_of(full) <= 76
    assert text_of(full).endswith("… ok, 8 alike"), "a long name takes no other word's place"


# ---- figures and steps -------------------------------------------------------------------------------


def test_figures_name_what_the_server_tells_and_leave_out_what_it_does_not() -> None:
    shown = text_of(one_line(first(states.serving()), 100))
    for part in ("60.1 tok/s", "3 running", "0 waiting", "KV 3.1 %", "accept 2.41"):
        assert part in shown
    assert "accept" not in text_of(one_line(first(states.idle()), 100))
    silent = msgspec.structs.replace(
        first(states.serving()), figures=msgspec.structs.replace(states.FIGURES, tok_s=None)
    )
    assert "this server does not tell" in text_of(one_line(silent, 100))


def test_steps_tick_off_with_times_and_the_one_at_work_stands_out() -> None:
    rows = step_rows(first(states.capture()).steps, 40)
    text = lines(rows)
    assert "✓ weights loaded                    2:41" in text
    assert "  ✓ draft                           0:10" in text
    assert "○ serving" in text
    assert [span.tone for row in rows for span in row if span.text == "CUDA graphs captured"] == ["strong"]
    assert all(width_of(row) <= 40 for row in rows)


# ---- alerts, strip -----------------------------------------------------------------------------------


def test_the_newest_alert_is_shown_with_age_and_counter_and_no_key_that_does_nothing() -> None:
    shown = text_of(alert_row(states.stalled(), 120))
    assert shown.startswith(" ✖ sglang:30000 stalled in graph capture")
    assert "52 s ago" in shown
    assert "  — K kill " in shown
    assert "K kill" not in text_of(alert_row(states.stalled(), 120, watch_only=True))
    assert text_of(alert_row(states.serving(), 80)) == " no alerts"
    alerts = states.stalled().alerts + states.crashed().alerts
    many = text_of(alert_row(pieces.picture(alerts=alerts), 120))
    assert "crashed" in many
    assert "2 alerts" in many


def test_the_strip_lists_hosts_and_servers_and_marks_the_chosen_one() -> None:
    pictures = (states.two_servers(), states.no_server())
    known = choices(pictures)
    assert [choice.host for choice in known] == [0, 0, 1]
    shown = lines(strip_rows(pictures, known[1], 120, 4))
    assert "▸● gpubox vllm:8000 ◐ loading" in shown
    assert " ● gpubox sglang:30000 ● READY" in shown
    assert "no server" in shown
    assert Choice(1, None) == known[2]
    alone = lines(strip_rows(pictures[:1], known[1], 120, 4))
    assert alone == "  sglang:30000 ● READY  ▸vllm:8000 ◐ loading  "


def test_a_cell_tells_link_phase_worst_card_and_alerts_of_its_host() -> None:
    hosts = (states.sick_cards(), states.stalled(), states.loading(), states.lost(), states.never_reached())
    shown = lines(strip_rows(hosts, Choice(0, pieces.KEY), 200, 4))
    for told in (
        "▸● gpubox ● READY  GPU 1 ORPHAN +3",
        " ● gpubox ✖ STALLED  ✖1  graphs 4/8",
        " ● gpubox ◐ loading  weights 37/64  60°",
        " ○ gpubox capturing 51 s ago  ▲1",
        " ○ gpubox not reached · try 5 in 8 s",
    ):
        assert told in shown
    for width in (60, 80, 120, 200):
        told_rows = strip_rows(hosts, Choice(4, None), width, 2)
        assert len(told_rows) <= 2
        assert all(width_of(line) <= width for line in told_rows)
        assert "▸○ gpubox" in lines(told_rows), "the chosen one is always among them"
    assert "5 in all" in lines(strip_rows(hosts, Choice(4, None), 80, 2))


# ---- panels ------------------------------------------------------------------------------------------


def test_each_situation_says_what_is_going_on() -> None:
    assert "connecting to root@gpubox" in panel(states.connecting())
    assert "host key of gpubox changed" in panel(states.refused()).replace("\n", " ")
    unreached = panel(states.never_reached())
    assert "Connection refused" in unreached
    assert "try 5 in 8 s" in unreached
    nothing = panel(states.no_server())
    assert "no inference server is running here" in nothing
    assert "GPU 1: 74.2 GiB are held by sglang::sched 4243" in nothing
    assert "--log PATH" in nothing


def test_before_the_list_of_processes_has_come_nobody_says_that_there_is_no_server() -> None:
    fresh = pieces.picture(link=Link(state="live", since=pieces.NOW - 1), processes_at=None)
    assert "looking for" in panel(fresh)
    assert "no server" not in text_of(header_row(fresh, None, 120))
    assert "no server" not in lines(sentence_rows(fresh, None, 50))
    assert "no server" not in lines(strip_rows((fresh, fresh), None, 120, 4))
    waiting = msgspec.structs.replace(fresh, link=Link(state="live", since=pieces.NOW - 12))
    assert "not sent its list of processes for 12 s" in panel(waiting)


def test_at_its_end_a_recording_says_so() -> None:
    over = msgspec.structs.replace(states.serving(), over="the recording ends here")
    assert " END " in text_of(header_row(over, first(over), 120))
    assert "the recording ends here, 2026-" in text_of(over_row(over, 80))
    assert all(width_of(over_row(over, width)) <= width for width in (60, 80, 120))


def test_a_stall_shows_its_evidence_with_ages_and_the_diagnosis_with_its_remedy() -> None:
    shown = panel(states.stalled())
    assert "why it is called stalled   capture_collective_hang" in shown
    assert "– graphs       4/8 · unchanged for 8:02:51" in shown
    assert "? port 30000   refused" in shown
    assert "→ look at NCCL_ALGO" in shown


def test_a_crash_shows_root_cause_rank_line_victims_and_remedy() -> None:
    shown = panel(states.crashed())
    for part in (
        "why it crashed   draft_context_mismatch",
        "131072 ≠ 262144",
        "TP0 · line 13",
        "is its victim",
    ):
        assert part in shown
    assert "→ set max_position_embeddings" in shown


def test_an_ended_server_says_what_becomes_of_its_view_and_promises_no_seconds() -> None:
    kept = "This view stays until its end is acknowledged; a new server is listed at the top."
    taken = "Its successor takes this view; another server is listed at the top."
    state = states.crashed()
    assert kept in panel(state, 116)
    seen = msgspec.structs.replace(state, alerts=())
    assert taken in panel(seen, 116)
    assert "within" not in panel(states.no_server(), 116), "a calm host is looked at less often"


def test_a_crash_without_a_known_cause_says_so() -> None:
    state = states.crashed()
    bare = msgspec.structs.replace(state, servers=(msgspec.structs.replace(first(state), diagnoses=()),))
    assert "names no cause that is known here" in panel(bare)


def test_stopped_degraded_and_suspect_have_their_own_words() -> None:
    state = states.crashed()
    stopped = msgspec.structs.replace(first(state), state="stopped", diagnoses=())
    assert "sglang:30000 was stopped" in panel(msgspec.structs.replace(state, servers=(stopped,)))
    assert "it serves, but   accept_length_one" in panel(states.degraded())
    server = first(states.capture())
    verdict = msgspec.structs.replace(
        first(states.stalled()).verdict, word="suspect", since_s=70, limit_s=120
    )
    suspect = pieces.picture(servers=(msgspec.structs.replace(server, verdict=verdict),))
    assert "quiet for longer than usual" in panel(suspect)
    assert "called stalled after 2:00" in panel(suspect)


def test_no_panel_while_all_is_well() -> None:
    for make in (states.loading, states.capture, states.serving, states.idle):
        assert link_panel(make()) is None
        assert panel_for(make(), first(make())) is None


def test_panels_fit_their_width_and_never_name_a_key_that_is_not_built() -> None:
    later = {action.label for action in ACTIONS if not action.available}
    for make in STATES:
        state = make()
        shown = link_panel(state) or panel_for(state, state.servers[0] if state.servers else None)
        if shown is None:
            continue
        for width in WIDTHS:
            for line in shown.rows(width):
                assert width_of(line) <= width
                assert not {span.text.strip() for span in line if span.tone == "key"} & later


def test_a_lost_link_says_since_when_why_and_what_is_tried_next() -> None:
    state = states.lost()
    assert "connection lost 41 s ago (no answer for 10 s) — try 5 in 8 s   r now" in text_of(
        lost_row(state, 80)
    )
    assert "what is below is old" in text_of(lost_row(state, 120))
    assert width_of(lost_row(state, 60)) <= 60


@pytest.mark.parametrize("make", STATES)
def test_a_tiny_window_still_says_host_state_and_the_sentence_of_truth(make: Callable[[], HostState]) -> None:
    state = make()
    server = state.servers[0] if state.servers else None
    rows = sentence_rows(state, server, 30, (32, 40))
    assert "60 columns show more; this window has 32" in " ".join(map(text_of, rows))
    assert all(width_of(row) <= 30 for row in rows[1:])
    if server is not None and state.target != "dgx2":
        assert server.truth.split(" · ")[0][:12] in lines(rows)


def test_what_a_dead_server_left_behind_has_a_key_of_its_own() -> None:
    state = states.crashed()
    left = msgspec.structs.replace(first(state), processes=2)
    gone = msgspec.structs.replace(first(state), processes=0)
    shown = panel_for(state, left, acts=True)
    assert shown is not None
    assert "server.kill" in shown.keys
    assert "ends what it left behind" in "\n".join(text_of(line) for line in shown.rows(76))
    nothing = panel_for(state, gone, acts=True)
    assert nothing is not None
    assert "server.kill" not in nothing.keys


def test_a_host_without_python_says_so_where_the_eye_looks() -> None:
    state = states.serving()
    by_shell = msgspec.structs.replace(state, host=msgspec.structs.replace(pieces.host(), python=""))
    for width in (80, 120, 200):
        line = text_of(header_row(by_shell, by_shell.servers[0], width))
        assert "NO PYTHON" in line
        assert "READY" in line
    assert "NO PYTHON" not in text_of(header_row(state, state.servers[0], 120))


def test_the_key_that_starts_it_again_is_named_only_where_its_start_is_known() -> None:
    state = states.crashed()
    for starts in (True, False):
        shown = panel_for(state, first(state), acts=True, starts=starts)
        assert shown is not None
        text = "\n".join(text_of(line) for line in shown.rows(200))
        assert ("starts it again as it was" in text) == starts
        assert ("server.restart" in shown.keys) == starts
        assert ("command line was not seen: a profile can start it" in text) != starts


def test_what_was_left_behind_is_not_called_the_cause_of_a_crash() -> None:
    state = states.crashed()
    left = Diagnosis(
        key="orphan_processes",
        root=True,
        severity="error",
        summary="processes of a dead server still hold GPU memory",
        line=None,
        rank=None,
        evidence="TP1 102",
        remedy=(),
    )
    server = msgspec.structs.replace(first(state), diagnoses=(left,), processes=1)
    text = panel(msgspec.structs.replace(state, servers=(server,)))
    assert "what was left behind   orphan_processes" in text
    assert "why it crashed" not in text
    assert "names no cause that is known here" in text


def test_a_stalled_server_on_a_host_without_gpus_promises_no_look_at_them() -> None:
    state = states.stalled()
    for gpus in (state.gpus, ()):
        shown = panel_for(msgspec.structs.replace(state, gpus=gpus), first(state), acts=True)
        assert shown is not None
        text = "\n".join(text_of(line) for line in shown.rows(120))
        assert "stops it" in text
        assert ("every GPU is free" in text) == bool(gpus)


def test_an_end_that_nobody_saw_is_not_explained() -> None:
    state = states.crashed()
    gone = Reason(signal="main process", value="4242 gone, reason not seen", age_s=5.0, says="bad")
    verdict = msgspec.structs.replace(first(state).verdict, reasons=(gone,))
    server = msgspec.structs.replace(first(state), diagnoses=(), verdict=verdict)
    text = panel(msgspec.structs.replace(state, servers=(server,)))
    assert "it is gone, the reason was not seen" in text
    assert "why it crashed" not in text
