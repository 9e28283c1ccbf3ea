"""What a server answers, prints or is started with cannot stop the monitor, and is never made up."""

from __future__ import annotations

import pytest

from specdash.monitor.commandline import launch_facts
from specdash.monitor.foreign import count, decoded, figure
from specdash.monitor.frames import Http
from specdash.monitor.metrics import parse
from specdash.monitor.polling import HEALTH, LOADS, METRICS, MODELS
from tests.monitor.frames_of import http, log, only_server, process, processes, run, server, tick

MANY = "9" * 400
BOMB = "[" * 40_000

LOADS_NEVER_SEEN = [
    BOMB,
    '{"a":' * 9_000,
    "null",
    '"text"',
    "<html><body>502 Bad Gateway</body></html>",
    '{"loads":[{"num_running_reqs":NaN,"num_waiting_reqs":Infinity,"timestamp":1e999,"gen_throughput":-1e999}]}',
    f'{{"loads":[{{"num_running_reqs":{MANY},"timestamp":{MANY},"token_usage":{MANY}}}]}}',
    f'{{"loads":[{{"num_running_reqs":{MANY * 20}}}]}}',
    '{"loads":[{"num_running_reqs":1,"speculative":[1]},[],7]}',
    '{"loads":[{"num_running_reqs":1,"speculative":"x"}]}',
    '{"loads":{"num_running_reqs":1}}',
]


@pytest.mark.parametrize("body", LOADS_NEVER_SEEN, ids=range(len(LOADS_NEVER_SEEN)))
def test_no_answer_to_a_load_query_stops_the_monitor(body: str) -> None:
    memory = run(
        processes(10.0, *server()),
        http(11.0, "connect"),
        http(12.0, LOADS, status=200, body=body),
        tick(13.0),
    )
    figures = only_server(memory).figures
    assert figures.running in (None, 0, 1)
    assert figures.tok_s in (None, 0.0)


def test_a_gauge_that_is_no_number_is_unknown_and_the_others_are_read() -> None:
    page = parse(
        "vllm:num_requests_running +Inf\nvllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc 0.5", 1.0
    )
    assert (page.running, page.waiting, page.kv_pct) == (None, None, 50.0)
    told = http(
        12.0, METRICS, status=200, body="vllm:generation_tokens_total 1e308\nvllm:num_requests_running -Inf"
    )
    memory = run(processes(10.0, *server()), told, told, tick(13.0))
    assert only_server(memory).figures.tok_s is None


def _models(body: str) -> str:
    memory = run(processes(10.0, *server()), http(11.0, MODELS, status=200, body=body), tick(12.0))
    return next(lamp.value for lamp in only_server(memory).lamps if lamp.name == "models")


def test_a_model_list_is_named_shortly_and_also_where_it_was_cut_off() -> None:
    whole = ",".join(
        f'{{"id":"m{n}","object":"model","permission":[{{"id":"p{n}","object":"model_permission"}}]}}'
        for n in range(40)
    )
    listed = f'{{"object":"list","data":[{whole}]}}'
    assert _models(listed) == "m0, m1, m2 and 37 more"
    assert _models(listed[: len(listed) // 2]).startswith("m0, m1, m2 and 1"), "a cut list still has models"


@pytest.mark.parametrize("body", [BOMB, "<html>login</html>", "[]", '{"data":{}}', '{"data":[1,null,[]]}'])
def test_what_is_no_model_list_names_no_model(body: str) -> None:
    assert _models(body) in ("200, no model", "200, not a model list")


def test_an_escape_code_inside_json_does_not_come_out_of_it() -> None:
    name = _models('{"data":[{"id":"a\\u001b[2J\\u0007[bold]x[/]\\u202e\\nb api_key=\\"hunter2\\""}]}')
    assert name == "a[bold]x[/] b api_key=<redacted>"
    config = '{"method":"e\\u001b]0;t\\u0007agle\\u202e3","num_speculative_tokens":2}'
    assert (
        launch_facts(("vllm", "serve", "m", "--speculative-config", config)).speculation == "EAGLE3 2 steps"
    )


def test_an_answer_that_broke_off_is_no_good_answer() -> None:
    page = Http(
        at=12.0, server="100:100", path=METRICS, status=200, error="reset", body="vllm:num_requests_running 7"
    )
    health = Http(at=12.0, server="100:100", path=HEALTH, status=200, error="timeout")
    memory = run(processes(10.0, *server()), http(11.0, "connect"), health, page, tick(13.0))
    assert only_server(memory).figures.running is None
    assert next(lamp.says for lamp in only_server(memory).lamps if lamp.name == "health") == "no"


def test_a_server_that_wants_a_key_is_not_said_to_have_no_model() -> None:
    memory = run(processes(10.0, *server()), http(11.0, MODELS, status=401), tick(12.0))
    models = next(lamp for lamp in only_server(memory).lamps if lamp.name == "models")
    assert (models.says, models.value) == ("unknown", "401: wants a key")


def test_a_log_line_of_nested_json_is_a_line_like_any_other() -> None:
    deep = '{"message":' + "[" * 30_000 + "]" * 30_000 + "}\n"
    wide = '{"message":"x","more":' + "[" * 1500 + "]" * 1500 + "}\n"
    memory = run(processes(10.0, *server()), log(11.0, deep + wide, start_=True), tick(12.0))
    assert only_server(memory).log_lines == 2


@pytest.mark.parametrize(
    "argv",
    [
        ("--speculative-config", BOMB),
        ("--speculative-config", '{"method":1e999,"num_speculative_tokens":1e999}'),
        ("--port", MANY * 20),
        ("--port", "99999"),
        ("--port", "0"),
        ("--port", "²"),
        ("--tp", MANY * 20, "--dp", MANY * 20),
    ],
    ids=lambda argv: " ".join(argv)[:30],
)
def test_no_option_of_a_server_stops_the_monitor_or_names_an_impossible_port(argv: tuple[str, ...]) -> None:
    command = ("vllm", "serve", "m", *argv)
    assert launch_facts(command).port is None
    memory = run(processes(10.0, process(100, 1, *command)), tick(12.0))
    assert only_server(memory).port == 8000, "what cannot be a port is not asked"


def test_a_rank_with_thousands_of_digits_is_a_rank() -> None:
    title = f"sglang::scheduler_TP{MANY * 20}"
    memory = run(processes(10.0, *server(), process(104, 100, title)), tick(12.0))
    assert len(only_server(memory).ranks) == 3


def test_numbers_of_others_are_taken_where_they_are_sane() -> None:
    assert [figure(value) for value in (1, 2.5, True, "3", None, float("inf"), float("nan"), 10**30)] == [
        1.0,
        2.5,
        *[None] * 6,
    ]
    assert (count(7.9), count(-2), count(float("nan")), count([])) == (7, 0, 0, 0)
    assert decoded("{") is None
