"""What the panel says of each situation, as text: what goes on, why, and which key helps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from rich.cells import cell_len

from specdash.monitor.documents import Diagnosis, Reason, Verdict
from specdash.monitor.signs import NOT_COUNTED, in_words, until_stalled
from specdash.monitor.state import HostState, Link
from specdash.monitor.words import Says
from specdash.operations.offer import Known
from specdash.tui.actions import ACTIONS
from specdash.tui.asciimode import plain
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.choices import strip_rows
from specdash.tui.widgets.glyphs import evidence_mark
from specdash.tui.widgets.header import header_row
from specdash.tui.widgets.linkpanels import link_panel, lost_row, over_row
from specdash.tui.widgets.noserver import SOON_S
from specdash.tui.widgets.sentence import sentence_rows
from specdash.tui.widgets.situation import panel_for
from tests.tui import pieces, states
from tests.tui.words import STATES, WIDTHS, first, lines, panel

# ---- panels ------------------------------------------------------------------------------------------


def test_each_situation_says_what_is_going_on() -> None:
    assert "connecting to root@gpubox" in panel(states.connecting())
    assert "host key of gpubox changed" in panel(states.refused()).replace("\n", " ")
    unreached = panel(states.never_reached())
    assert "Connection refused" in unreached
    assert "try 5 in 8 s" in unreached
    nothing = panel(states.no_server())
    assert "no inference server is running here" in nothing
    assert "GPU 1: 74.2 GiB are held by no process that can be seen" in nothing
    assert "--log PATH" in nothing


def test_a_slow_connection_says_how_far_it_is_and_how_long_it_takes() -> None:
    link = Link(state="connecting", since=0.0, reason="its sshd answers; agreeing on encryption")
    slow = msgspec.structs.replace(states.connecting(), link=link, now=8.0)
    assert panel(slow).startswith("connecting to root@gpubox · 8 s\n")
    assert "its sshd answers; agreeing on encryption" in panel(slow)


def test_before_the_list_of_processes_has_come_nobody_says_that_there_is_no_server() -> None:
    fresh = pieces.picture(link=Link(state="live", since=pieces.NOW - 1), processes_at=None)
    assert "looking for" in panel(fresh)
    assert "no server" not in text_of(header_row(fresh, None, 120))
    assert "no server" not in lines(sentence_rows(fresh, None, 50))
    assert "no server" not in lines(strip_rows((fresh, fresh), None, 120, 4))
    waiting = msgspec.structs.replace(fresh, link=Link(state="live", since=pieces.NOW - 12))
    assert "not sent its list of processes for 12 s" in panel(waiting)


def test_a_host_is_called_what_was_typed_and_by_its_own_name_where_there_is_room() -> None:
    state = states.serving()
    state = msgspec.structs.replace(state, target="root@10.0.0.5")
    wide = text_of(header_row(state, state.servers[0], 130))
    assert wide.startswith(" specdash ▸ 10.0.0.5 (gpubox) ▸ sglang:30000")
    narrower = text_of(header_row(state, state.servers[0], 106))
    assert narrower.startswith(" 10.0.0.5 ▸ sglang:30000   ● ssh 12 ms   SGLang 0.5.16"), (
        "its name goes first"
    )
    assert text_of(header_row(state, state.servers[0], 80)).startswith(" 10.0.0.5  ●")


def test_at_its_end_a_recording_says_so() -> None:
    over = msgspec.structs.replace(states.serving(), over="the recording ends here")
    assert " END " in text_of(header_row(over, first(over), 120))
    assert "the recording ends here, 2026-" in text_of(over_row(over, 80))
    assert all(width_of(over_row(over, width)) <= width for width in (60, 80, 120))


def test_a_stall_shows_its_evidence_with_ages_and_the_diagnosis_with_its_remedy() -> None:
    shown = panel(states.stalled())
    assert "why it is called stalled   capture_collective_hang" in shown
    assert "■ graphs       4/8 · unchanged for 8:02:51" in shown
    assert "? port 30000   refused" in shown
    assert "→ look at NCCL_ALGO" in shown


def test_no_evidence_looks_as_if_it_were_missing_but_what_was_not_seen() -> None:
    """A dash reads as "not available", in ASCII as well; what does not count wears no mark at all."""
    said: tuple[tuple[Says, str], ...] = (
        ("bad", "TP3 rests"),
        ("flat", "4/8"),
        ("alive", "last line"),
        ("flat", f"TP7 100 %{NOT_COUNTED}"),
        ("unknown", "not read"),
    )
    marks = [evidence_mark(Reason(signal="a", value=value, age_s=None, says=says))[0] for says, value in said]
    assert marks == ["✖", "■", "✓", " ", "?"]
    assert [plain(mark) for mark in marks] == ["X", "#", "+", " ", "?"]
    assert all(cell_len(mark) == 1 for mark in marks)


def test_in_ascii_at_most_stays_at_most_and_the_line_as_long_as_it_was() -> None:
    for told, seen in (("≤ 40.0 s", "<=40.0 s"), ("p90 ≥5 s", "p90>=5 s"), ("≤", "<")):
        assert plain(told) == seen


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
    kept = "This view stays. Once its end is acknowledged, a new server of this port takes it."
    taken = "A new server of this port takes this view."
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
    stopped = msgspec.structs.replace(first(state), state="stopped", diagnoses=(), gone_at=state.now - 5)
    assert "sglang:30000 was stopped" in panel(msgspec.structs.replace(state, servers=(stopped,)))
    assert "it serves, but   accept_length_one" in panel(states.degraded())
    server = first(states.capture())
    verdict = msgspec.structs.replace(
        first(states.stalled()).verdict, word="suspect", since_s=70, limit_s=120
    )
    suspect = pieces.picture(servers=(msgspec.structs.replace(server, verdict=verdict),))
    assert "quiet for longer than usual" in panel(suspect)
    assert "called stalled after 2:00 without progress · 1:10 so far" in panel(suspect)


def test_what_is_being_carried_out_is_not_advised() -> None:
    state = states.stalled()
    at_work = panel_for(state, first(state), acts=True, at_work=True)
    assert at_work is not None
    assert "it was called stalled, and is being ended" in text_of(at_work.title)
    assert not [one for one in map(text_of, at_work.rows(110)) if one.startswith(("K", "→"))]
    still = panel_for(state, first(state), acts=True)
    assert still is not None
    assert [one[0] for one in map(text_of, still.rows(110)) if one.startswith(("K", "→"))] == ["→", "→", "K"]
    stopping = msgspec.structs.replace(first(states.serving()), state="stopped")
    for busy, advised in ((True, False), (False, True)):
        told = panel_for(state, stopping, acts=True, at_work=busy)
        assert told is not None
        text = "\n".join(map(text_of, (told.title, *told.rows(110))))
        assert "sglang:30000 is stopping" in text
        assert ("K   ends it, if it does not go by itself" in text) is advised
        assert "R " not in text, "it cannot be started while it is there"
    assert "◐ stopping  up" in text_of(header_row(state, stopping, 120))


def test_a_suspect_past_its_limit_is_not_promised_to_be_called_at_it() -> None:
    verdict = Verdict(word="suspect", since_s=28971, limit_s=120)
    assert until_stalled(verdict) == "past its limit of 2:00: looked at once more before it is called stalled"
    others_move = msgspec.structs.replace(verdict, since_s=3.0)
    assert until_stalled(others_move) == "called stalled after 2:00 without progress · 3 s so far"
    assert until_stalled(msgspec.structs.replace(verdict, limit_s=None)) == ""


def test_what_nobody_can_say_has_its_reasons_and_they_do_not_flash_up_at_first() -> None:
    reason = Reason(signal="log", value="empty so far", age_s=None, says="unknown")
    verdict = Verdict(word="unknown", since_s=None, limit_s=None, reasons=(reason,))
    server = pieces.server(state="unknown", verdict=verdict)
    state = pieces.picture(servers=(server,))
    met = state.now - (state.link.since or 0.0)
    assert met >= SOON_S
    assert "why its state is not known" in panel(state)
    assert "log   empty so far" in panel(state)
    at_once = msgspec.structs.replace(state, link=msgspec.structs.replace(state.link, since=state.now - 1))
    assert panel_for(at_once, server) is None


def test_what_came_last_is_never_told_without_its_time() -> None:
    growth = Reason(signal="memory", value=f"last growth{NOT_COUNTED}", age_s=0.3, says="flat")
    assert in_words(growth) == "last growth 0 s ago (does not count here)"
    assert in_words(msgspec.structs.replace(growth, age_s=89.0)) == (
        "last growth 1:29 ago (does not count here)"
    )


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
    assert "connection lost 41 s ago: no answer for 10 s — try 5 in 8 s   r now" in text_of(
        lost_row(state, 80)
    )
    assert "what is below is old" in text_of(lost_row(state, 120))
    at_it = msgspec.structs.replace(state, link=msgspec.structs.replace(state.link, retry_at=None, attempt=5))
    trying = text_of(lost_row(at_it, 120))
    assert "— try 5 is under way   what is below" in trying, "no key is named that would change nothing"
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
    told: dict[Known | None, str] = {
        "seen": "R   starts it again as it was",
        "profile": "R   starts it again as the profile says",
        None: "command line was not seen: a profile can start it",
    }
    for starts, words in told.items():
        shown = panel_for(state, first(state), acts=True, starts=starts)
        assert shown is not None
        text = "\n".join(text_of(line) for line in shown.rows(200))
        assert [one for one in told.values() if one in text] == [words]
        assert ("server.restart" in shown.keys) == (starts is not None)
        assert ("R   " in text) == (starts is not None)
    for starts, words in (("seen", "the last one again"), ("profile", "the server of the profile")):
        shown = panel_for(states.no_server(), None, acts=True, starts=starts)
        assert shown is not None
        assert f"R   starts {words}" in lines(shown.rows(200))
        assert "server.restart" in shown.keys, "what the panel offers stands at the foot, however narrow"


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


def test_a_dead_server_that_was_started_again_elsewhere_offers_no_second_start() -> None:
    state = states.crashed()
    dead = first(state)
    heir = msgspec.structs.replace(
        dead, key="9:9", pid=9, state="loading", gone_at=None, started_at=dead.started_at + 9, diagnoses=()
    )
    told = panel_for(msgspec.structs.replace(state, servers=(heir, dead)), dead, acts=True)
    assert told is not None
    text = "\n".join(text_of(line) for line in told.rows(100))
    assert "It was started again: sglang:30000, pid 9, is loading." in text
    assert "starts it again" not in text
    assert "server.restart" not in told.keys
