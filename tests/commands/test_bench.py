"""``specdash bench``: options become loads, the plan comes first, figures and reasons come out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import msgspec
import pytest

from specdash.bench.events import AnyEvent, Begin, End, Tick
from specdash.bench.plan import Workload
from specdash.cli import main
from specdash.commands import bench
from specdash.commands.acting import Refused, Scene
from specdash.commands.benchload import loads_of
from specdash.commands.benchtold import live_words
from specdash.commands.campaign import Campaign
from specdash.errors import SpecdashError
from specdash.history.runs import Runs
from specdash.measuring.campaign import Place
from specdash.measuring.course import Course, Subject
from specdash.measuring.keeping import Keeper
from specdash.measuring.progress import Progress
from specdash.monitor.state import HostState
from specdash.operations.plan import Plan
from specdash.session.lessons import place
from specdash.sim.ports import free_port
from tests.measuring.scripted import Scripted, good_run

URL = "http://127.0.0.1:8000"
Do = Callable[..., tuple[int, str, str]]


def given(**more: Any) -> dict[str, Any]:
    return {"json": False, "dry_run": False, "yes": True, "name": None, "tags": (), "claim": None, **more}


@pytest.fixture
def do(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Do:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def done(generator: Scripted, repeat: int = 1, **more: Any) -> tuple[int, str, str]:
        loads, _ = loads_of(URL, {"requests": 4, "output": 100})
        subject = Subject(
            host=URL, name=URL, place="on this machine", variant=more.pop("variant", "baseline"), model="m"
        )
        course = Course(subject=subject, loads=loads, repeat=repeat)
        code = asyncio.run(bench.carry_out(course, generator, given(**more)))
        return code, *capsys.readouterr()

    return done


def test_the_plan_comes_first_and_the_table_last(do: Do) -> None:
    code, out, err = do(Scripted(good_run(), good_run(), good_run()), 3)
    assert code == 0
    assert "3 times: 1 stream, 4 requests of 128 tokens in and 100 out" in err
    assert err.index("POST http://127.0.0.1:8000/v1/chat/completions") < err.index("run 1: 1 stream")
    assert out.splitlines()[0] == "1 stream, 128 in 100 out, chat"
    assert out.splitlines()[2].split()[:2] == ["baseline", "3"]
    assert "kept: " not in err, "nobody sits there"


def test_whoever_sits_there_is_told_what_comes_next(do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, _, err = do(Scripted(good_run()))
    told = "kept: specdash runs lists what was measured, specdash compare lays it side by side"
    assert err.endswith(f"{told}\n")
    assert told not in do(Scripted(good_run()), json=True)[2]


@pytest.mark.parametrize(("term", "in_place"), [("xterm", True), ("dumb", False), ("", False)])
def test_a_terminal_that_cannot_go_back_in_a_line_gets_lines(
    do: Do, term: str, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    err = do(Scripted(good_run()))[2]
    assert ("\x1b" in err, "\r" in err) == (in_place, in_place)
    assert "benchmark · " in err


def test_before_it_asks_it_says_how_long_it_will_take_and_by_what(do: Do) -> None:
    _, _, first = do(Scripted(good_run()))
    assert "how long: not known before the first answers; Ctrl-C stops it" in first
    with pytest.raises(Refused):
        do(Scripted(), yes=False)
    _, out, _ = do(Scripted(), dry_run=True)
    assert "how long: about 6 s, at the 96.2 tok/s of run 1 with 1 stream" in out


def test_json_is_the_contracts_document(do: Do) -> None:
    code, out, _ = do(Scripted(good_run(accept=2.4)), json=True)
    document = json.loads(out)
    assert (code, document["schema"]) == (0, 1)
    (run,) = document["runs"]
    contract = (
        "id concurrency requests errors duration_s output_tok_s ttft_ms tpot_ms itl_ms chunk_gap_ms e2e_ms"
        " output_tokens tokens_by accept_length client"
    )
    assert {*contract.split()} <= {*run}
    assert (run["id"], run["requests"], run["tokens_by"]) == (1, 4, "usage")
    assert run["accept_length"] == pytest.approx(2.4)


def test_a_claim_is_held_against_the_runs(do: Do) -> None:
    _, out, _ = do(Scripted(good_run(), good_run(), good_run()), 3, claim=150.0)
    assert "claimed 150.0 tok/s" in out
    assert "not reproduced" in out


def test_an_earlier_variant_stands_beside_it(do: Do) -> None:
    do(Scripted(*(good_run() for _ in range(3))), 3)
    _, out, _ = do(Scripted(*(good_run(each_s=0.02, accept=2.4) for _ in range(3))), 3, variant="eagle3-3")
    assert "slower, provisional" in out
    assert "which start of the server was measured is not known" in out


def test_a_run_that_does_not_count_ends_with_1_and_is_kept(do: Do) -> None:
    events = [event for event in good_run() if not isinstance(event, End)]
    code, _, err = do(Scripted([*events, End(t=5.0, cancelled=True)]), name="night", tags=("a",))
    assert code == 1
    assert "✖ does not count: stopped before its end" in err
    runs = Runs(place())
    assert [(run.name, run.tags) for run in runs.all()] == [("night", ("a",))]
    runs.close()


class Interrupted(Scripted):
    """Ctrl-C is pressed once a run has ended, before the next has begun."""

    def __init__(self, *runs: list[AnyEvent], by: signal.Signals = signal.SIGINT) -> None:
        super().__init__(*runs)
        self._by = by

    async def run(self, load: Workload) -> AsyncIterator[AnyEvent]:
        async for event in super().run(load):
            yield event
        os.kill(os.getpid(), self._by)
        await asyncio.sleep(0)


def test_stopped_between_two_runs_it_is_no_whole_benchmark(
    do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SpecdashError, match="stopped: 2 of 3 runs were not begun"):
        do(Interrupted(good_run(), good_run(), good_run()), 3)
    assert "baseline  1" in capsys.readouterr().out, "what was measured is told"


@pytest.mark.parametrize(("before", "runs"), [(signal.SIG_DFL, 1), (signal.SIG_IGN, 3)])
def test_a_closed_terminal_stops_it_unless_nohup_was_told_that_it_shall_not(
    do: Do, before: signal.Handlers, runs: int
) -> None:
    usual = signal.signal(signal.SIGHUP, before)
    try:
        with contextlib.suppress(SpecdashError):
            do(Interrupted(*(good_run() for _ in range(3)), by=signal.SIGHUP), 3)
    finally:
        signal.signal(signal.SIGHUP, usual)
    kept = Runs(place())
    assert len(kept.all()) == runs
    kept.close()


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC, errno.EIO])
def test_nobody_who_hears_how_it_goes_is_no_reason_to_cut_it_off(
    do: Do, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.RawIOBase):
        """``2>&1 | head``, a full disk, a closed terminal."""

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise OSError(number, os.strerror(number))

    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", io.TextIOWrapper(Gone(), write_through=True))  # type: ignore[type-var]
        code, out, _ = do(Scripted(good_run(), good_run()), 2)
    assert (code, out.splitlines()[2].split()[:2]) == (0, ["baseline", "2"])


def test_where_nothing_can_be_measured_it_is_said_in_one_sentence(do: Do) -> None:
    with pytest.raises(SpecdashError, match="nothing could be measured: no request ended well"):
        do(Scripted([Begin(at=1.0), End(error="no request ended well: http_4xx: no chat template")]))


def test_without_a_yes_nothing_is_sent(do: Do) -> None:
    generator = Scripted(good_run())
    with pytest.raises(Refused, match="bench was not confirmed"):
        do(generator, yes=False)
    assert generator.loads == []
    code, out, _ = do(generator, dry_run=True)
    assert (code, generator.loads, "POST" in out) == (0, [], True)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["bench", URL, "--watch"], 4, "--watch never does"),
        (["bench", "http://127.0.0.1:NOBODY", "--yes"], 3, "nobody answers at http://127.0.0.1:NOBODY"),
        (["bench", "http://127.0.0.1:9", "--concurrency", "0"], 2, "no list of numbers above 0"),
        (["bench", "http://a b", "--yes"], 1, "url:"),
        (["bench", URL, "--rate", "2", "--concurrency", "1,2"], 2, "--rate takes one --concurrency"),
        (["bench", URL, "--benchmark", "nope"], 2, "the profile has no benchmark nope"),
        (["bench", URL, "--campaign", "a,b"], 2, "give the host, not a URL"),
        (["bench", "gpubox", "--campaign", "a,b", "--claim", "94"], 2, "takes no --claim"),
        (["bench", "gpubox", "--campaign", "a"], 2, "two variants or more"),
        (["bench", "gpubox", "--campaign", "a,b"], 2, "the profile has no variant a"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_sent(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = str(free_port())  # the same name on every runner, and nobody's port on its machine
    with pytest.raises(SystemExit) as end:
        main([word.replace("NOBODY", nobody) for word in arguments])
    assert end.value.code == code
    assert says.replace("NOBODY", nobody) in capsys.readouterr().err


def test_options_become_loads() -> None:
    loads, repeat = loads_of(URL, {"concurrency": "1, 64", "repeat": 5, "eos": True, "insecure": True})
    assert [(load.concurrency, load.requests) for load in loads] == [(1, 32), (64, 256)]
    few, _ = loads_of(URL, {"concurrency": "1,64", "requests": 3})
    assert [load.requests for load in few] == [3, 3], "as many as were asked for"
    assert (repeat, loads[0].output, loads[0].ignore_eos, loads[0].tls_verify) == (5, 256, False, False)
    ((rated,), _) = loads_of(URL, {"rate": 2.5, "concurrency": "8"})
    assert (rated.rate, rated.concurrency) == (2.5, 8)
    with pytest.raises(click.UsageError):
        loads_of(URL, {"concurrency": "1,x"})


def test_the_profiles_benchmark_is_overridden_by_options() -> None:
    from specdash.profile.document import Benchmark, Profile

    profile = Profile(benchmarks={"short": Benchmark(concurrency=(1, 4), requests=16, output=512, repeat=5)})
    loads, repeat = loads_of(URL, {"benchmark": "short", "output": 64}, profile)
    assert [(load.concurrency, load.requests, load.output) for load in loads] == [(1, 16, 64), (4, 16, 64)]
    assert repeat == 5


def test_a_command_of_the_operators_own_is_not_run_from_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "specdash.toml"
    file.write_text("schema = 1\n[benchmarks.mine]\ncommand = ['true']\ntok_s = '([0-9]+)'\n")
    with pytest.raises(SystemExit) as end:
        main(["bench", URL, "--profile", str(file), "--benchmark", "mine"])
    assert end.value.code == 2
    assert "runs on a host: name the host" in capsys.readouterr().err


def test_the_live_line() -> None:
    tick = Tick(
        t=3,
        tok_s=84.2,
        tokens_by="usage",
        done=12,
        total=32,
        failed=1,
        running=4,
        left_s=18.2,
        ttft_ms=52.4,
        itl_ms=11.84,
    )
    progress = Progress(
        host="h", name="n", variant="v", state="measuring", run=2, runs=2, tick=tick, speed=(80.0, 84.2),
        so_far=82.1, takes_s=21.2, accept_length=2.41, break_even=3.3,
    )  # fmt: skip
    assert live_words(progress) == (
        "benchmark 2 of 2 · 12 of 32 requests · 1 failed · 0:18 left · 84.2 tok/s, this run 82.1 · TTFT 52 ms"
        " · ITL 11.8 ms · accept 2.41 (break-even 3.30) · 4 running"
    )


def test_without_a_history_it_is_said_before_anything_is_asked_and_the_figures_are_told(do: Do) -> None:
    place().parent.mkdir(parents=True, exist_ok=True)
    place().write_bytes(b"no history " * 999)
    code, out, err = do(Scripted(good_run()))
    assert code == 1, "a script that goes on to compare finds nothing"
    assert err.index("nothing of this will be kept: ") < err.index("a run that is not kept: 1 stream")
    assert "history.db is damaged" in err
    assert out.splitlines()[2].split()[:2] == ["baseline", "1"]
    assert "None" not in out + err
    assert "kept: specdash runs" not in err


def test_what_never_began_is_no_run(do: Do) -> None:
    with pytest.raises(SpecdashError, match="nothing could be measured: /nowhere: No such file"):
        do(Scripted([End(t=0.0, error="/nowhere: No such file")]))
    kept = Runs(place())
    assert kept.all() == ()
    kept.close()


@pytest.mark.parametrize("lives", [True, False])
async def test_what_a_campaign_would_do_is_a_document_and_a_refusal_is_no_success(
    lives: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    loads, _ = loads_of(URL, {"requests": 4, "output": 100})
    here = SimpleNamespace(state=HostState(target="gpubox"), given=given(json=True, dry_run=True))
    work = Campaign(cast(Scene, here), ("a", "b"), loads, 3, Keeper(print), "campaign-1")
    refused = Plan(
        id="p", kind="restart", subject="a", target="gpubox", host="gpubox", boot="", steps=(), made=0.0
    )
    refused = msgspec.structs.replace(refused, refusal="GPU 0 is somebody's")

    async def planned(stage: int) -> Plan:
        return refused

    monkeypatch.setattr(work, "_lives", lambda place: lives)
    monkeypatch.setattr(work, "_restart_plan", planned)
    code = await work.run(Place(0, 1, "boot/1:2"))
    out, err = capsys.readouterr()
    assert json.loads(out)["plan"] == []
    assert code == (0 if lives else 1), "as of every other plan"
    assert ("1 restart into a" in err) == (not lives), "what lives is not restarted"
    assert "2 restart into b, one token, 3 runs" in err
    assert ("1 a runs still: 2 runs more" in err) == lives


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--name", "12", "no name"),
        ("--tag", "", "no name"),
        ("--variant", "x" * 81, "no name"),
        ("--key-env", "A_KEY_THAT_NOBODY_HAS_SET", "A_KEY_THAT_NOBODY_HAS_SET is not set here"),
    ],
)
def test_a_name_or_key_that_cannot_be_is_refused_before_anybody_is_asked(
    option: str, value: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "http://127.0.0.1:1", option, value])
    assert end.value.code == 2
    assert says in capsys.readouterr().err


def test_a_campaign_refuses_a_variant_whose_patches_it_would_not_take_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "specdash.toml"
    profile.write_text(
        'schema = 1\n[hosts.gpubox]\ntarget = "gpubox"\n'
        '[servers.main]\nhost = "gpubox"\nengine = "sglang"\nlauncher = "process"\ncommand = ["x"]\n'
        '[variants.a]\nserver = "main"\n'
        '[variants.b]\nserver = "main"\n[[variants.b.patches]]\nfile = "/models/draft/config.json"\n'
        "set = { max_position_embeddings = 8192 }\n"
    )
    with pytest.raises(SystemExit) as end:
        main(["bench", "gpubox", "--profile", str(profile), "--campaign", "a,b", "--yes"])
    assert end.value.code == 1
    assert "b patches files, and a campaign does not take patches back" in capsys.readouterr().err
