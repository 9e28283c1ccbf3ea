"""One benchmark from its first run to its last: in turn, watched, kept, stopped in order."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import msgspec
import pytest

from specdash.bench.events import AnyEvent, Begin, End, Output, Tick
from specdash.bench.plan import parse, sweep
from specdash.bench.record import Measured
from specdash.errors import SpecdashError
from specdash.measuring.benchmark import Benchmark
from specdash.measuring.course import Course, Script, Subject
from specdash.measuring.progress import Progress
from tests.measuring.scripted import FakeHost, Scripted, good_run
from tests.tui import pieces, states

SUBJECT = Subject(host="gpubox", name="vllm:8000", place="on gpubox", server=pieces.KEY, launch="boot/1:2")
LOAD = parse({"url": "http://127.0.0.1:8000", "requests": 4, "output": 100})


class Kept(list[Measured]):
    """A history without a file."""

    def keep(self, run: Measured, events: Sequence[AnyEvent]) -> Measured:
        run = msgspec.structs.replace(run, id=len(self) + 1)
        self.append(run)
        return run


def course(repeat: int = 1, **subject: object) -> Course:
    return Course(subject=msgspec.structs.replace(SUBJECT, **subject), loads=(LOAD,), repeat=repeat)


async def test_runs_are_kept_with_their_figures_and_what_they_depend_on() -> None:
    kept, generator = Kept(), Scripted(good_run(), good_run())
    host = FakeHost(states.serving(), ("vllm", "serve", "m", "--max-num-seqs", "4"))
    runs = await Benchmark(course(2), generator, keep=kept.keep, host=host).run()
    assert [run.id for run in runs] == [1, 2]
    assert runs[0].tok_s == pytest.approx(100, rel=0.06)
    assert (runs[0].trouble, runs[0].launch, runs[0].workload) == ((), "boot/1:2", LOAD)
    assert runs[0].fingerprint["flag --max-num-seqs"] == "4"
    assert runs[0].fingerprint["prompts"] == "abc"
    assert runs[0].during.samples == 1
    assert len(runs[0].speed) == 4, "the warm-up is none of it"
    assert host.listeners == []


async def test_progress_tells_how_far_and_how_long_still() -> None:
    seen: list[Progress] = []
    benchmark = Benchmark(course(2), Scripted(good_run(), good_run()), keep=Kept().keep)
    benchmark.subscribe(lambda: seen.append(benchmark.progress))
    await benchmark.run()
    states_ = list(dict.fromkeys(each.state for each in seen))
    assert states_ == ["starting", "warming up", "measuring", "done"]
    inside = [each for each in seen if each.run == 2 and each.state == "measuring"]
    assert inside[0].share == pytest.approx((1 + 3 / 6) / 2), "two of its six requests warmed up"
    assert inside[0].left_s == pytest.approx(3.0), "no further run"
    first = next(each for each in seen if each.run == 1 and each.state == "measuring")
    assert first.left_s == pytest.approx(3.0 + 5.04, abs=0.01)
    assert (seen[-1].share, seen[-1].left_s) == (1.0, None)
    assert seen[-1].median_tok_s is not None


async def test_the_share_never_goes_back_and_the_time_left_is_that_of_all_runs_from_the_warm_up_on() -> None:
    """Two requests warm up and four are measured, 1.04 s each; the generator reckons to the run's end."""
    warm = [
        Tick(t=0.9, phase="warmup", running=1, total=2),
        Tick(t=1.04, phase="warmup", done=1, running=1, total=2, left_s=5 * 1.04),
        Tick(t=2.08, phase="warmup", done=2, total=2, left_s=4 * 1.04),
        Tick(t=2.1, done=0, running=1, total=4),
    ]
    events = good_run()
    at = 2.08
    for number, event in enumerate(events):
        if isinstance(event, Tick) and event.phase == "run":
            at += 1.04
            events[number] = msgspec.structs.replace(event, t=at, left_s=(4 - event.done) * 1.04)
    run = [event for event in events if not (isinstance(event, Tick) and event.phase == "warmup")]
    run[1:1] = warm
    seen: list[Progress] = []
    benchmark = Benchmark(course(3), Scripted(run, run, run), keep=Kept().keep)
    benchmark.subscribe(lambda: seen.append(benchmark.progress))
    await benchmark.run()
    shares = [each.share for each in seen]
    assert shares == sorted(shares)
    told = [each.left_s for each in seen if each.under_way]
    first = next(at for at, left in enumerate(told) if left is not None)
    assert seen[first].state == "warming up"
    left = [seconds for seconds in told[first:] if seconds is not None]
    assert len(left) == len(told[first:]), "once it is known it stays known"
    assert left[0] == pytest.approx(17 * 1.04)
    assert all(later <= earlier + 0.2 for earlier, later in itertools.pairwise(left)), left


async def test_what_is_shown_of_a_run_at_work_is_what_is_kept_of_it_and_never_a_median_of_its_seconds() -> (
    None
):
    """A short run whose first second holds little: by seconds it would be shown a quarter too low."""
    events = good_run()
    slow = next(at for at, event in enumerate(events) if isinstance(event, Tick) and event.phase == "run")
    events[slow] = msgspec.structs.replace(events[slow], tok_s=12.0)
    shown: list[float | None] = []
    benchmark = Benchmark(course(), Scripted(events), keep=Kept().keep)
    benchmark.subscribe(lambda: shown.append(benchmark.progress.so_far))
    (run,) = await benchmark.run()
    known = [rate for rate in dict.fromkeys(shown) if rate is not None]
    assert known[-1] == run.tok_s == benchmark.progress.median_tok_s
    assert known == pytest.approx([run.tok_s] * len(known), rel=0.06)


async def test_stopping_keeps_a_partial_run_and_begins_no_other() -> None:
    kept, generator = Kept(), Scripted(good_run(), good_run(), hold=True)
    benchmark = Benchmark(course(5), generator, keep=kept.keep)
    measuring = asyncio.Event()
    benchmark.subscribe(lambda: measuring.set() if benchmark.progress.state == "measuring" else None)
    task = asyncio.ensure_future(benchmark.run())
    await measuring.wait()
    benchmark.stop()
    benchmark.stop()
    runs = await task
    assert (len(runs), generator.stopped, len(generator.loads)) == (1, 1, 1)
    assert runs[0].trouble == ("stopped before its end",)
    assert benchmark.progress.state == "done"


async def test_a_server_that_answers_nothing_ends_it_and_is_kept_with_the_reason() -> None:
    kept = Kept()
    events: list[AnyEvent] = [Begin(at=1.0), End(error="no request ended well: refused: Connection refused")]
    benchmark = Benchmark(course(5), Scripted(events), keep=kept.keep)
    with pytest.raises(SpecdashError, match="no request ended well: refused"):
        await benchmark.run()
    assert benchmark.progress.state == "failed"
    assert kept[0].trouble == ("no request ended well: refused: Connection refused",)


async def test_runs_of_another_start_of_the_server_are_not_taken_for_this_one() -> None:
    """A server that is started anew in the middle has another key, and the same port."""
    host, kept = FakeHost(states.serving()), Kept()

    def keep(run: Measured, events: Sequence[AnyEvent]) -> Measured:
        (server,) = host.state.servers
        host.state = msgspec.structs.replace(
            host.state, servers=(msgspec.structs.replace(server, gone_at=host.state.now),)
        )
        return kept.keep(run, events)

    benchmark = Benchmark(course(3), Scripted(good_run(), good_run(), good_run()), keep=keep, host=host)
    with pytest.raises(SpecdashError, match="vllm:8000 has ended: no further run is begun"):
        await benchmark.run()
    assert (len(kept), benchmark.progress.state) == (1, "failed")


async def test_a_generator_that_is_lost_costs_its_own_run_only() -> None:
    kept = Kept()
    benchmark = Benchmark(course(2), Scripted(good_run(), [SpecdashError("it is gone")]), keep=kept.keep)
    with pytest.raises(SpecdashError, match="it is gone"):
        await benchmark.run()
    assert (len(kept), benchmark.progress.error) == (1, "it is gone")


async def test_break_even_comes_from_a_kept_baseline_of_the_same_load() -> None:
    known = Kept()
    await Benchmark(course(), Scripted(good_run(each_s=0.01)), keep=known.keep).run()
    three = course(2, variant="eagle3-3")
    slow = [good_run(each_s=0.014, accept=2.4), good_run(each_s=0.014, accept=2.4)]
    benchmark = Benchmark(three, Scripted(*slow), keep=Kept().keep, known=known)
    seen: list[Progress] = []
    benchmark.subscribe(lambda: seen.append(benchmark.progress))
    await benchmark.run()
    assert seen[-1].baseline == pytest.approx(known[0].tok_s)
    assert seen[-1].break_even == pytest.approx(2.4 * 1.4, rel=0.01)
    other = Benchmark(
        Course(subject=three.subject, loads=sweep(LOAD, (8,))),
        Scripted(good_run()),
        keep=Kept().keep,
        known=known,
    )
    await other.run()
    assert other.progress.baseline is None


async def test_the_accept_length_of_the_moment_is_the_servers() -> None:
    state = states.serving()
    server = msgspec.structs.replace(
        state.servers[0], figures=msgspec.structs.replace(state.servers[0].figures, accept_len=2.2)
    )
    host = FakeHost(msgspec.structs.replace(state, servers=(server,)))
    benchmark = Benchmark(course(), Scripted(good_run()), keep=Kept().keep, host=host)
    await benchmark.run()
    assert benchmark.progress.accept_length == 2.2


OWN = Script(command=("python3", "/tmp/benchmark_eagle3.py"), tok_s=r"throughput:\s*([\d.]+)")


async def test_a_command_of_the_operators_own_is_kept_like_any_run() -> None:
    lines: list[AnyEvent] = [
        Begin(at=1_795_990_000.0),
        Output(t=1, line="warming up"),
        Output(t=9, line="throughput: 83.5 tok/s"),
        End(t=10, exit=0, tok_s=(83.5,)),
    ]
    kept, generator = Kept(), Scripted(lines, lines)
    benchmark = Benchmark(Course(subject=SUBJECT, loads=(), script=OWN, repeat=2), generator, keep=kept.keep)
    seen: list[str] = []
    benchmark.subscribe(lambda: seen.append(benchmark.progress.line))
    runs = await benchmark.run()
    assert generator.commands == [OWN.command] * 2
    assert [(run.tok_s, run.trouble, run.cell) for run in runs] == [
        (83.5, (), "python3 /tmp/benchmark_eagle3.py")
    ] * 2
    assert "throughput: 83.5 tok/s" in seen


async def test_a_command_whose_rate_is_not_found_says_so() -> None:
    lines: list[AnyEvent] = [Begin(at=1.0), Output(t=1, line="done"), End(t=2, exit=0)]
    benchmark = Benchmark(Course(subject=SUBJECT, loads=(), script=OWN), Scripted(lines), keep=Kept().keep)
    with pytest.raises(SpecdashError, match="tok_s matched no line"):
        await benchmark.run()
