"""What stands in front of a line is said shortly, and nothing that was printed is out of reach."""

from __future__ import annotations

import pytest

from specdash.intake.rules import grammar_of
from specdash.logs.lens import Row as LogRow
from specdash.logs.pattern import searched
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.logline import Form, in_sight, line_row
from specdash.tui.widgets.logprefix import Head, head

VLLM, SGLANG = grammar_of("vllm"), grammar_of("sglang")
ROUTE = "(APIServer pid=26875) INFO 11-29 17:08:36 [launcher.py:195] Route: /v1/chat/completions"


def shown(text: str, engine: str | None = "vllm", form: Form = "short", needle: str = "no such") -> str:
    grammar = grammar_of(engine) if engine else None
    return text_of(
        line_row(LogRow("line", 1, text), form=form, grammar=grammar, shape=searched(needle).shape)
    )


@pytest.mark.parametrize(
    ("printed", "short"),
    [
        (ROUTE, " 17:08:36 API  Route: /v1/chat/completions"),
        (
            "(EngineCore pid=1) WARNING 11-29 17:08:36 [core.py:1] slow",
            " 17:08:36 core WARN slow",
        ),
        (
            "(EngineCore_DP1 pid=9) ERROR 11-29 17:08:36 [core.py:1] dead",
            " 17:08:36 core DP1 ERR dead",
        ),
        ("(Worker_TP3 pid=7) INFO 11-29 17:08:36 [gpu.py:9] Loading", " 17:08:36 TP3  Loading"),
        ("(Worker_DP0_TP3 pid=7) INFO 11-29 17:08:36 [gpu.py:9] a", " 17:08:36 DP0 TP3 a"),
        ("(VllmWorker rank=3 pid=7) INFO 11-29 17:08:36 [gpu.py:9] a", " 17:08:36 rank 3 a"),
        (
            "INFO 11-29 17:08:36 [api_server.py:1] before there were names",
            " 17:08:36 before there were names",
        ),
        ("INFO 11-29 17:08:36 api_server.py:1] older still", " 17:08:36 older still"),
        ("(EngineCore pid=12) Process EngineCore:", " core Process EngineCore:"),
        (
            "vllm-1  | (APIServer pid=1) INFO 11-29 17:08:36 [a.py:1] under compose",
            " 17:08:36 API  under compose",
        ),
    ],
)
def test_a_vllm_line_says_time_who_and_only_a_level_worth_seeing(printed: str, short: str) -> None:
    assert shown(printed) == short


@pytest.mark.parametrize(
    "same",
    [
        'INFO:     127.0.0.1:54882 - "GET /health HTTP/1.1" 200 OK',
        "W1129 17:08:12.634000 26875 torch/_library/triton.py:53] Triton not available",
        "Loading safetensors checkpoint shards:  50% | 1/2 "
        "(EngineCore pid=1) INFO 11-29 17:08:36 [core.py:1] glued to a bar",
        '{"asctime": "2026-11-29 17:08:36", "message": "one of many fields"}',
        "at 2026-11-29 12:33:55 it",
        "",
    ],
)
def test_a_line_without_the_engines_prefix_at_its_front_stays_as_it_is(same: str) -> None:
    assert shown(same) == f" {same}"


def test_an_sglang_line_says_time_and_ranks() -> None:
    assert shown("[2026-11-29 12:33:55 TP0] Init", "sglang") == " 12:33:55 TP0 Init"
    assert shown("[2026-11-29 12:33:55.123 DP1 TP2] Init", "sglang") == " 12:33:55 DP1 TP2 Init"
    assert shown("[2026-11-29 12:33:52] server_args=X", "sglang") == " 12:33:52 server_args=X"


def test_a_date_at_the_front_is_cut_whoever_wrote_it() -> None:
    assert head("2026-11-29 12:33:55,123 - INFO", None) == Head("12:33:55", "", None, "", "- INFO")
    assert shown("2026-11-29 12:33:55,123 - INFO", None) == " 12:33:55 - INFO"


def test_a_level_is_coloured_and_an_error_is_red_as_a_whole() -> None:
    warning = line_row(LogRow("line", 1, "WARNING 11-29 17:08:36 [a.py:1] slow"), grammar=VLLM)
    assert [(span.text, span.tone) for span in warning if span.tone == "warn"] == [("WARN ", "warn")]
    error = line_row(LogRow("line", 1, "ERROR 11-29 17:08:36 [a.py:1] dead", error=True), grammar=VLLM)
    assert {span.tone for span in error if span.text.strip() in ("ERR", "dead")} == {"bad"}


def test_a_wrapped_line_has_room_for_the_place_and_a_printed_one_for_everything() -> None:
    assert shown(ROUTE, form="whole") == " 17:08:36 API  launcher.py:195 Route: /v1/chat/completions"
    assert shown(ROUTE, form="printed") == f" {ROUTE}"
    assert shown(ROUTE, form="untimed") == " API  Route: /v1/chat/completions"


def test_a_line_found_by_what_the_short_form_leaves_out_is_shown_as_printed_with_the_hit() -> None:
    found = line_row(LogRow("line", 1, ROUTE), grammar=VLLM, shape=searched("launcher").shape)
    assert text_of(found) == f" {ROUTE}"
    assert [span.text for span in found if span.tone == "hit"] == ["launcher"]
    assert shown(ROUTE, needle="route") == " 17:08:36 API  Route: /v1/chat/completions"
    assert shown(ROUTE, needle="elsewhere") == " 17:08:36 API  Route: /v1/chat/completions"


def test_a_hit_far_to_the_right_is_brought_into_sight_behind_its_prefix() -> None:
    line = "WARNING 11-29 17:08:36 [a.py:1] " + "words " * 40 + "an error at its end"
    found = line_row(LogRow("line", 1, line), grammar=VLLM, shape=searched("error").shape)
    assert "error" not in text_of(found)[:72]
    seen = in_sight(found, 72)
    assert text_of(seen).startswith(" 17:08:36 WARN …")
    assert text_of(seen).endswith("words words an error at its end")
    assert len(text_of(seen)) == 72, "as much of it as there is room for"
    assert [span.text for span in seen if span.tone == "hit"] == ["error"]
    assert in_sight(found, 400) == found
    wide = line_row(LogRow("line", 1, "字" * 90 + "error"), shape=searched("error").shape)
    assert width_of(in_sight(wide, 30)[:-1]) <= 30


def test_a_line_without_a_hit_keeps_its_beginning() -> None:
    plain = line_row(LogRow("line", 1, "words " * 40), shape=searched("error").shape)
    assert in_sight(plain, 72) == plain
