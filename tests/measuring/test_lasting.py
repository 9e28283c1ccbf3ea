"""How long a benchmark takes, before it is begun: reckoned from what is known, and said from what."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from specdash.bench.figures import Run
from specdash.bench.plan import Workload, parse
from specdash.bench.record import Measured
from specdash.measuring.course import Course, Script, Subject, plan
from specdash.measuring.lasting import how_long, roughly
from specdash.monitor.serverparts import Figures, Latency
from specdash.monitor.state import Server
from tests.tui import states

replace = msgspec.structs.replace
LOAD = parse({"url": "http://127.0.0.1:8000", "requests": 32, "output": 256})
SUBJECT = Subject(host="gpubox", name="vllm:8000", place="on gpubox", model="m")
NOW = 1000.0


def course(load: Workload = LOAD, script: Script | None = None) -> Course:
    return Course(subject=SUBJECT, loads=() if script else (load,), repeat=3, script=script)


def words(load: Workload = LOAD, *known: Measured, server: Server | None = None) -> str:
    return how_long(course(load), load, known=known, server=server, now=NOW)


def kept(number: int, tok_s: float, streams: int = 1, **more: object) -> Measured:
    run = Run(concurrency=streams, requests=32, errors=0, duration_s=100.0, output_tok_s=tok_s)
    load = replace(LOAD, concurrency=streams)
    about = {"host": "gpubox", "workload": load, "fingerprint": {"model": "m"}, **more}
    return Measured(id=number, at=float(number), run=run, **about)  # type: ignore[arg-type]


STEADILY = (9.0, 29.0, 30.0, 30.0, 31.0)


def serving(
    figures: Figures, *, speculation: str | None = None, rates: tuple[float, ...] = STEADILY
) -> Server:
    (server,) = states.serving().servers
    return replace(server, figures=figures, speculation=speculation, tok_history=rates)


def test_nothing_known_is_said_with_what_ends_it() -> None:
    assert words() == "how long: not known before the first answers; Ctrl-C stops it"
    told = how_long(course(), LOAD, server=serving(Figures(at=NOW, tok_s=0.0, running=0)), now=NOW, stop="B")
    assert told == "how long: not known before the first answers; B stops it"


def test_the_newest_run_with_as_many_streams_tells() -> None:
    # 34 requests (2 of them warm up) of 256 tokens, three times: 26,112 tokens.
    known = kept(1, 9.0), kept(12, 71.0), kept(13, 400.0, 8)
    assert words(LOAD, *known) == "how long: about 6 min, at the 71.0 tok/s of run 12 with 1 stream"


def test_a_run_of_another_variant_is_called_so() -> None:
    assert "of run 2 with 1 stream" in words(LOAD, kept(2, 71.0), kept(3, 90.0, variant="eagle3-3"))
    assert "of run 3 (eagle3-3) with 1 stream" in words(LOAD, kept(3, 90.0, variant="eagle3-3"))


def test_a_run_with_other_streams_gives_the_longest_it_can_take() -> None:
    more = replace(LOAD, concurrency=8, requests=30)
    # 46 requests, three times: 35,328 tokens, and eight streams are together no slower than one.
    assert (
        words(more, kept(12, 71.0))
        == "how long: at most about 8 min, at the 71.0 tok/s of run 12 with 1 stream"
    )
    # One stream alone is no slower than one of eight.
    assert words(LOAD, kept(13, 400.0, 8)).startswith(
        "how long: at most about 9 min, at the 400.0 tok/s of run 13"
    )


def test_another_model_or_host_or_what_somebody_claims_tells_nothing() -> None:
    other = (
        kept(1, 71.0, fingerprint={"model": "larger"}),
        kept(2, 71.0, host="elsewhere"),
        kept(3, 71.0, claimed=True),
    )
    assert "not known" in words(LOAD, *other)


def test_a_run_that_does_not_count_tells_nothing_of_the_next_one() -> None:
    stopped = kept(13, 20.0)
    stopped = replace(stopped, run=replace(stopped.run, cancelled=True))
    assert "of run 12 " in words(LOAD, kept(12, 71.0), stopped)
    assert "not known" in words(LOAD, stopped), "what it held when it was stopped is not its pace"
    other = kept(4, 2.9, workload=replace(LOAD, output=64))
    assert "the 2.9 tok/s of run 4 " in words(LOAD, stopped, other), "less like it, but it counts"
    assert "of run 14 " in words(LOAD, kept(12, 71.0), kept(14, 60.0), other), "of two alike the newest"
    shared = kept(15, 20.0)
    shared = replace(shared, run=replace(shared.run, errors=30))
    assert "of run 12 " in words(LOAD, kept(12, 71.0), shared)
    own = kept(5, 71.0, workload=None, command=("bench.sh",))
    own = replace(own, run=replace(own.run, cancelled=True))
    script = Script(command=("bench.sh",))
    assert "not known" in how_long(course(script=script), script, known=(own,))


def test_the_server_tells_where_no_run_with_as_many_streams_was_kept() -> None:
    busy = serving(Figures(at=NOW - 2, tok_s=30.0, running=1))
    assert words(server=busy) == "how long: about 15 min, at the 30.0 tok/s it makes now with 1 request"
    assert "not known" in words(server=serving(Figures(at=NOW - 60, tok_s=30.0, running=1))), (
        "that is long ago"
    )
    ours = replace(busy, tok_history=(31.0, 9.0, 58.0, 30.0))
    assert "not known" in words(server=ours), "requests come and go"
    assert "not known" in words(server=replace(busy, tok_history=(30.0,)))
    itl = Latency(at=NOW - 40, p50_ms=100.0, p90_ms=120.0, counted=500)
    idle = Figures(at=NOW, tok_s=0.0, running=0, itl=itl)
    assert (
        words(server=serving(idle))
        == "how long: about 44 min, at the 10.0 tok/s that one stream had 40 s ago"
    )
    assert "not known" in words(server=serving(idle, speculation="EAGLE3 3 steps")), (
        "a step is no token there"
    )
    least = replace(idle, itl=replace(itl, p50_least=True))
    assert "not known" in words(server=serving(least))
    quick = replace(idle, itl=replace(itl, finest_ms=100.0))
    assert "not known" in words(server=serving(quick)), "within the first bucket only a bound is known"


def test_a_rate_and_a_duration_tell_by_themselves() -> None:
    rate = replace(LOAD, rate=0.5)
    assert words(rate) == "how long: at least 3 min: 32 requests at 0.5 a second"
    assert words(replace(LOAD, duration=60.0)) == "how long: at most 3 min, beside warm-up and last answers"


def test_a_command_of_the_operators_own_takes_what_it_took() -> None:
    script = Script(command=("bench.sh",))
    whole = course(script=script)
    assert "not known before it has run once; " in how_long(whole, script, known=(kept(1, 71.0),))
    known = (kept(4, 71.0, workload=None, command=("bench.sh",)),)
    assert how_long(whole, script, known=known) == "how long: about 5 min, by what run 4 took"


def test_the_plan_says_it_of_each_load() -> None:
    whole = replace(course(), loads=(LOAD, replace(LOAD, concurrency=8)))
    what = plan(whole, made=1.0, lasts=partial(how_long, whole, known=(kept(12, 71.0),)))
    assert [step.preview[-1].partition(",")[0] for step in what.steps] == [
        "how long: about 6 min",
        "how long: at most about 9 min",
    ]


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0.2, "1 s"), (40.4, "40 s"), (89.4, "89 s"), (100, "2 min"), (5399, "90 min"), (5400, "1.5 h")],
)
def test_it_is_said_no_more_exactly_than_it_is_known(seconds: float, says: str) -> None:
    assert roughly(seconds) == says
