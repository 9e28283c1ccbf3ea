"""What B offers: the profile's benchmarks first, own commands among them, then the usual loads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specdash.measuring.course import Script
from specdash.measuring.keeping import Keeper
from specdash.measuring.offering import MORE, MOST_OTHERS, Offering
from specdash.monitor.serverparts import Lamp
from specdash.profile.document import Benchmark, Profile
from tests.operations.fakehost import sglang
from tests.tui.actors import HostSource
from tests.tui.test_measuring import BenchHost

OWN = Benchmark(command=("python3", "/tmp/benchmark_eagle3.py"), tok_s=r"throughput: ([\d.]+)", repeat=3)


def offering(tmp_path: Path, **benchmarks: Benchmark) -> Offering:
    host = BenchHost()
    server = sglang(host)
    operations = HostSource(host, tmp_path, profile=Profile(schema=1, benchmarks=benchmarks)).operations
    assert operations is not None
    return Offering(operations, server)


async def test_own_commands_and_loads_of_the_profile_come_before_the_usual_ones(tmp_path: Path) -> None:
    rate = Benchmark(rate=2.5, requests=10)
    offer = await offering(tmp_path, eagle=OWN, steady=rate).offer()
    assert offer.plan.steps[0].title == "measure 3 times: a command of your own"
    assert offer.plan.steps[0].preview[0] == "python3 /tmp/benchmark_eagle3.py"
    assert [(also.label, also.says) for also in offer.also[:2]] == [
        (
            "steady",
            "2.5 requests a second, 10 requests, 128 tokens in 256 out, one run: no ± known",
        ),
        ("1 stream ×3", "1 stream, 32 requests, 128 tokens in 256 out, 3 runs"),
    ]


async def test_no_other_way_is_the_plan_that_is_shown_and_equal_loads_read_alike(tmp_path: Path) -> None:
    short = Benchmark(requests=4, output=128, repeat=3)
    offer = await offering(tmp_path, usual=Benchmark(repeat=3), short=short).offer()
    assert offer.plan.steps[0].title == "measure 3 times: 1 stream, 32 requests of 128 tokens in and 256 out"
    assert [(also.label, also.says) for also in offer.also[:2]] == [
        ("short", "1 stream, 4 requests, 128 tokens in 128 out, 3 runs"),
        (
            "1 stream ×1",
            "1 stream, 32 requests, 128 tokens in 256 out, one run: no ± known",
        ),
    ]
    wide = await offering(tmp_path, one=short, wide=Benchmark(concurrency=(1, 64), repeat=2)).offer()
    assert wide.also[0].says == "1, 64 streams, 32 to 256 requests, 128 tokens in 256 out, 2 runs"


async def test_how_long_it_takes_is_said_with_the_key_that_ends_it(tmp_path: Path) -> None:
    offer = await offering(tmp_path).offer()
    assert offer.plan.steps[0].preview[-1] == "how long: not known before the first answers; B stops it"


async def test_an_own_command_that_was_chosen_is_what_runs(tmp_path: Path) -> None:
    here = offering(tmp_path, steady=Benchmark(output=64), eagle=OWN)
    first = await here.offer()
    chosen = await next(also for also in first.also if also.label == "eagle").make()
    course = here.benchmark(chosen.plan.id, Keeper(print), ()).course
    assert course.runs == (Script(command=OWN.command or (), tok_s=OWN.tok_s),) * 3


async def test_every_benchmark_can_be_reached_however_many_there_are(tmp_path: Path) -> None:
    names = [f"load{number}" for number in range(9)]
    offer = await offering(
        tmp_path, **{name: Benchmark(output=64 + at) for at, name in enumerate(names)}
    ).offer()
    seen: set[str] = set()
    for _ in range(4):
        assert len(offer.also) <= MOST_OTHERS
        seen |= {also.label for also in offer.also}
        offer = await next(also for also in offer.also if also.label == MORE).make()
        assert offer.plan.steps[0].title.startswith("measure once: "), "the plan is the same"
    assert {*names[1:], "1 stream ×3", "1 stream ×1", "8 streams", "64 streams"} <= seen


async def test_a_benchmark_of_the_profile_hides_the_usual_one_of_its_name(tmp_path: Path) -> None:
    offer = await offering(tmp_path, **{"1 stream ×3": OWN}).offer()
    assert offer.plan.steps[0].title == "measure 3 times: a command of your own"


@pytest.mark.parametrize("streams", [(1,), (1, 8)])
async def test_without_a_profile_the_usual_loads_are_offered(
    tmp_path: Path, streams: tuple[int, ...]
) -> None:
    named = {} if streams == (1,) else {"both": Benchmark(concurrency=streams)}
    offer = await offering(tmp_path, **named).offer()
    assert len(offer.plan.steps) == len(streams)


async def test_a_refused_port_refuses_the_plan_before_anything_is_pressed(tmp_path: Path) -> None:
    host = BenchHost()
    lamp = Lamp(name="port", says="waiting", value="30000 refused")
    server = msgspec.structs.replace(sglang(host), lamps=(lamp,))
    operations = HostSource(host, tmp_path).operations
    assert operations is not None
    offer = await Offering(operations, server).offer()
    assert str(offer.plan.refusal).startswith("nobody answers on port 30000")


async def test_the_plan_says_until_when_runs_are_kept(tmp_path: Path) -> None:
    host = BenchHost()
    server = sglang(host)
    operations = HostSource(host, tmp_path).operations
    assert operations is not None
    for_good = await Offering(operations, server).offer()
    with_the_demo = await Offering(operations, server, kept="until the demo ends").offer()
    ends = [offer.plan.steps[0].preview[-2] for offer in (for_good, with_the_demo)]
    assert "; kept in the history as baseline" in ends[0]
    assert "; kept until the demo ends as baseline" in ends[1]
