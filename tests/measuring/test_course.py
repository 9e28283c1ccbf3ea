"""What a benchmark will do, said before it does it."""

from __future__ import annotations

import msgspec
import pytest

from specdash.bench.plan import Workload, parse, sweep
from specdash.errors import SpecdashError
from specdash.measuring.course import (
    Course,
    Script,
    Subject,
    beforehand,
    busy,
    counted,
    load_words,
    plan,
    slug,
    subject_of,
    unanswered,
    url_of,
)
from specdash.monitor.serverparts import Lamp
from tests.tui import pieces, states

LOAD = parse({"url": "http://127.0.0.1:8000", "requests": 4, "output": 100})
SUBJECT = Subject(host="gpubox", name="vllm:8000", place="on gpubox", variant="eagle3-3", model="target")


def test_the_plan_is_literal() -> None:
    what = plan(Course(subject=SUBJECT, loads=(LOAD,), repeat=5), made=1.0)
    assert (what.kind, what.steps[0].risk) == ("bench", "soft")
    assert what.steps[0].title == "measure 5 times: 1 stream, 4 requests of 128 tokens in and 100 out"
    assert what.steps[0].preview == (
        "POST http://127.0.0.1:8000/v1/chat/completions, model target",
        "temperature 0; ignore_eos: no answer ends early",
        "4 requests and 2 to warm up, a fresh nonce in each; in all about 3,840 tokens in and 3,000 out",
        "GET /metrics before and after",
        "the load is made on gpubox; kept in the history as eagle3-3",
    )


def test_a_name_that_nobody_gave_is_said_to_be_ours() -> None:
    nameless = msgspec.structs.replace(SUBJECT, variant="baseline")
    told = plan(Course(subject=nameless, loads=(LOAD,)), made=1.0).steps[0].preview[-1]
    assert told.endswith("kept in the history as baseline, the name for all that runs without speculation")


@pytest.mark.parametrize(
    ("streams", "requests", "says"),
    [
        (8, 3, "fewer requests than streams: never more than 3 streams at work"),
        (8, 8, "fewer than 4 requests a stream: little of it has all streams at work"),
        (8, 32, None),
        (1, 1, None),
    ],
)
def test_too_few_requests_to_fill_the_streams_are_sent_as_asked_and_that_is_said(
    streams: int, requests: int, says: str | None
) -> None:
    load = msgspec.structs.replace(LOAD, concurrency=streams, requests=requests)
    preview = plan(Course(subject=SUBJECT, loads=(load,)), made=1.0).steps[0].preview
    assert [line for line in preview if "fewer" in line] == ([says] if says else [])


def test_prompts_of_a_file_cost_what_they_hold() -> None:
    load = msgspec.structs.replace(LOAD, prompts="mine.jsonl")
    assert (
        plan(Course(subject=SUBJECT, loads=(load,)), made=1.0)
        .steps[0]
        .preview[2]
        .endswith("in all about 600 tokens out, and what the prompts of mine.jsonl hold")
    )


def test_several_loads_take_turns_so_that_a_drift_meets_all() -> None:
    whole = Course(subject=SUBJECT, loads=sweep(LOAD, (1, 8)), repeat=3)
    assert [load.concurrency for load in whole.runs if isinstance(load, Workload)] == [1, 8, 8, 1, 1, 8]
    assert len(plan(whole, made=1.0).steps) == 2


def test_a_command_of_the_operators_own_is_shown_as_it_is() -> None:
    script = Script(command=("python3", "/tmp/a b.py"), tok_s="tps: (.*)")
    what = plan(Course(subject=SUBJECT, loads=(), script=script, repeat=3), made=1.0)
    assert what.steps[0].title == "measure 3 times: a command of your own"
    assert what.steps[0].preview == (
        "python3 '/tmp/a b.py'",
        "its rate is what tps: (.*) finds",
        "runs on gpubox; kept in the history as eagle3-3",
    )


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"concurrency": 64}, "64 streams, 4 requests of 128 tokens in and 100 out"),
        ({"rate": 2.5}, "2.5 requests a second (poisson), 4 requests of 128 tokens in and 100 out"),
        ({"rate": 2, "concurrency": 8}, "2 requests a second (poisson), at most 8 at once, 4 requests"),
        ({"prompts": "/srv/p.jsonl"}, "1 stream, 4 requests of 128 tokens in from /srv/p.jsonl and 100 out"),
    ],
)
def test_a_load_in_words(asked: dict[str, object], says: str) -> None:
    assert load_words(msgspec.structs.replace(LOAD, **asked)).startswith(says)


def test_a_found_server_is_measured_where_it_listens() -> None:
    state = states.serving()
    (server,) = state.servers
    subject = subject_of(state, server)
    assert (subject.variant, subject.server, subject.name) == ("eagle3-3", pieces.KEY, "sglang:30000")
    assert subject.launch == f"{subject.boot}/{pieces.KEY}"
    assert subject_of(state, server, variant="night").variant == "night"
    assert url_of(server) == "http://127.0.0.1:30000"
    assert url_of(msgspec.structs.replace(server, bind="::1")) == "http://[::1]:30000"
    with pytest.raises(SpecdashError, match="no port"):
        subject_of(state, msgspec.structs.replace(server, port=None))


@pytest.mark.parametrize(
    ("engine", "may"), [("vllm", True), ("sglang", True), ("trtllm", False), ("of-their-own", True)]
)
def test_counters_are_read_only_where_reading_takes_nothing_away(engine: str, may: bool) -> None:
    (server,) = states.serving().servers
    assert counted(msgspec.structs.replace(server, engine=engine)) is may
    load = msgspec.structs.replace(LOAD, counters=may)
    lines = plan(Course(subject=SUBJECT, loads=(load,)), made=1.0).steps[0].preview
    assert ("GET /metrics before and after" in lines) is may


def test_speculation_names_the_variant() -> None:
    assert [slug(text) for text in (None, "EAGLE3 3 steps", "NGRAM")] == ["baseline", "eagle3-3", "ngram"]


def test_whoever_uses_the_server_already_is_told_before_anything_is_sent() -> None:
    state = states.serving()
    figures = msgspec.structs.replace(state.servers[0].figures, at=state.now - 2, running=2, waiting=1)
    server = msgspec.structs.replace(state.servers[0], figures=figures)
    (says,) = beforehand(server, state.now)
    assert says.startswith("3 requests are at the server now, not ours")
    assert beforehand(server, state.now + 60) == (), "that is long ago"
    idle = msgspec.structs.replace(server, figures=msgspec.structs.replace(figures, running=0, waiting=0))
    assert beforehand(idle, state.now) == ()
    (says,) = beforehand(idle, state.now, cut_off=True)
    assert "it is ended first" in says
    assert busy(1)[0].startswith("1 request is")
    assert busy(None) == ()


def test_where_nobody_answers_on_the_port_nothing_is_measured() -> None:
    state = states.stalled()
    lamps = [Lamp(name="port", says=says, value="") for says in ("waiting", "unknown", "yes")]
    refused, unknown, open_ = (
        msgspec.structs.replace(state.servers[0], port=30000, lamps=(lamp,)) for lamp in lamps
    )
    assert unanswered(refused) == "nobody answers on port 30000: there is nothing to measure yet"
    assert unanswered(unknown) is unanswered(open_) is None
