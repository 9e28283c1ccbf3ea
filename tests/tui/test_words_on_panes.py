"""What the panes beside and below the log say, as text: figures, steps, alerts, the strip."""

from __future__ import annotations

import msgspec

from specdash.monitor.serverparts import LogSource
from specdash.monitor.state import Alert
from specdash.runbooks import steps as procedure
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.alerts import alert_row
from specdash.tui.widgets.choices import Choice, cells, choices, strip_rows
from specdash.tui.widgets.entrydetail import entry_rows
from specdash.tui.widgets.figures import one_line
from specdash.tui.widgets.glyphs import STATE_WORDS
from specdash.tui.widgets.logframe import no_log_rows
from specdash.tui.widgets.steps import step_rows
from tests.tui import pieces, states
from tests.tui.words import first, lines

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


def test_a_log_of_which_nothing_was_read_says_whether_there_is_anything_in_it() -> None:
    awaited = LogSource(kind="file", path="/l/vllm.log", says="")
    empty = msgspec.structs.replace(awaited, size=0)
    assert lines([*no_log_rows(awaited, 80), *no_log_rows(empty, 80)]).splitlines() == [
        " waiting for /l/vllm.log",
        " /l/vllm.log is empty so far",
    ]


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
    seen = msgspec.structs.replace(states.stalled(), alerts=())
    assert text_of(alert_row(seen, 80)) == " put away: sglang:30000 STALLED"
    other = msgspec.structs.replace(states.crashed().alerts[0], key="server:5000:1/crashed/1")
    alerts = (*states.stalled().alerts, other)
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
    assert alone == " 0  sglang:30000 ● READY  ▸vllm:8000 ◐ loading  ", "the key that goes there stands first"


def test_a_cell_tells_link_phase_worst_card_and_alerts_of_its_host() -> None:
    hosts = (states.sick_cards(), states.stalled(), states.loading(), states.lost(), states.never_reached())
    shown = lines(strip_rows(hosts, Choice(0, pieces.KEY), 204, 4))
    for told in (
        "▸● gpubox ● READY  GPU 1 ORPHAN +3",
        " ● gpubox ✖ STALLED  ✖1  graphs 4/8",
        " ● gpubox ◐ loading  weights 37/64  60°",
        " ○ gpubox capturing, seen 51 s ago",
        " ○ gpubox not reached · try 5 in 8 s",
    ):
        assert told in shown
    for width in (60, 80, 120, 200):
        told_rows = strip_rows(hosts, Choice(4, None), width, 2)
        assert len(told_rows) <= 2
        assert all(width_of(line) <= width for line in told_rows)
        assert "▸○ gpubox" in lines(told_rows), "the chosen one is always among them"
    assert "5 in all" in lines(strip_rows(hosts, Choice(4, None), 80, 2))


def test_a_cell_without_room_says_less_and_cuts_no_word() -> None:
    hosts = (states.two_servers(), states.never_reached())
    said = {
        width: tuple(text_of(one).strip() for one in cells(hosts, None, width)) for width in (40, 28, 24, 18)
    }
    assert said[40][1:] == ("● gpubox vllm:8000 ◐ loading  weights", "○ gpubox not reached · try 5 in 8 s")
    assert said[28][1:] == ("● gpubox :8000 ◐ loading", "○ gpubox not reached")
    assert said[24][1:] == ("● gpubox vllm:8000 ◐", "○ gpubox not reached")
    assert said[18][1] == "● gpubox :8000 ◐"


def test_a_change_of_a_state_makes_no_second_line_of_the_strip() -> None:
    both = states.two_servers()
    ready, loading = both.servers
    for width in range(40, 70):
        shapes = {
            len(strip_rows((msgspec.structs.replace(both, servers=(ready, one)),), None, width, 4))
            for one in (loading, *(msgspec.structs.replace(loading, state=word) for word in STATE_WORDS))
        }
        assert len(shapes) == 1, width


def test_an_alert_is_counted_behind_its_server_and_one_of_the_host_behind_the_host() -> None:
    both = states.two_servers()
    ready, loading = both.servers
    ill = Alert(key=f"server:{loading.key}/stalled/1", at=1.0, severity="error", text="it", alarm=True)
    card = Alert(key="gpu:0/orphan", at=2.0, severity="warning", text="a card")
    hosts = (msgspec.structs.replace(both, alerts=(ill, card)), states.loading())
    first, second, other = (text_of(one) for one in cells(hosts, None, 60))
    assert f"gpubox ▲1 {ready.name} ● READY" in first
    assert "▲" not in second
    assert f"{loading.name} ◐ loading  ✖1" in second
    assert "▲" not in other
    assert "✖" not in other
    alone = msgspec.structs.replace(both, alerts=(ill,))
    assert "✖" not in text_of(cells((alone, states.loading()), None, 60)[0])


def test_what_was_seen_of_a_step_and_has_no_words_breaks_no_sheet() -> None:
    step = procedure.Step(
        title="run it", state="failed", source="runbook", evidence=(procedure.Seen(text=" "),)
    )
    assert lines(entry_rows(step, 60)).strip() == ""
