"""The generator as a program, against a server that knows what it sent and when."""

from __future__ import annotations

import itertools
import signal
import time
from typing import Any

import pytest

from specdash.bench.events import Begin, Counters, End, Request, Tick
from specdash.bench.record import Measured
from specdash.sim.ports import free_port
from tests.bench.server import MockServer, generator, heard, measured, of

QUICK = ("--ttft", "0.02", "--itl", "0.002")


def test_a_run_is_what_the_server_sent() -> None:
    with MockServer(*QUICK, "--k", "3", "--role", "--reasoning", "6") as server:
        _, said, run = measured(server.url, concurrency=4, requests=12, output=32, warmup=4, input=64)
        stats = server.stats()
    begin, end = of(said, Begin)[0], of(said, End)[0]
    assert (begin.model, begin.requests, begin.warmups, end.done, end.failed) == ("mock", 12, 4, 12, 0)
    assert (run.requests, run.errors, run.output_tokens, run.tokens_by) == (12, 0, 12 * 32, "usage")
    assert run.tokens_per_chunk == pytest.approx(32 / 11)
    assert run.tokens_off == 0
    assert run.accept_length == pytest.approx(32 / 11, abs=0.001)
    truth = stats["truth"][4:]
    asked = sum(one["first"] - one["asked"] for one in truth) / len(truth)
    assert run.ttft_ms is not None
    assert run.ttft_ms.mean / 1000 >= asked - 1e-4
    assert run.ttfo_ms is not None
    assert run.ttfo_ms.mean > run.ttft_ms.mean
    assert stats["most"] == 4
    assert 40 < (run.prompt_tokens or 0) / 12 < 90


def test_every_prompt_of_a_run_is_new_and_the_seed_decides_the_rest() -> None:
    with MockServer("--ttft", "0", "--itl", "0") as server:
        texts = []
        for seed in (1, 1, 2):
            server.forget()
            measured(server.url, seed=seed, concurrency=2, requests=6, output=4, warmup=3, counters=False)
            texts.append([body["messages"][0]["content"] for body in server.stats()["bodies"]])
    first, again, other = texts
    assert len(set(first)) == 9
    assert not set(first) & set(again)

    def tails(run: list[str]) -> set[str]:
        return {text.partition(". ")[2] for text in run}

    assert tails(first) == tails(again) != tails(other)


def test_a_prefix_of_one_prompt_is_no_prefix_of_another_run() -> None:
    with MockServer("--ttft", "0", "--itl", "0") as server:
        for _ in range(2):
            measured(server.url, requests=1, output=4, input=200, counters=False)
        one, two = (body["messages"][0]["content"] for body in server.stats()["bodies"])
    assert one[:11] != two[:11]


@pytest.mark.parametrize(
    ("option", "kind"),
    [("--refuse", "rate_limited"), ("--fail", "http_5xx"), ("--cut", "cut"), ("--poison", "error_chunk")],
)
def test_errors_are_counted_by_kind_and_are_no_latency(option: str, kind: str) -> None:
    with MockServer(*QUICK, option, "3") as server:
        _, said, run = measured(server.url, concurrency=2, requests=9, output=8)
        active = server.stats()["active"]
    assert (run.requests, run.errors, dict(run.error_kinds)) == (9, 3, {kind: 3})
    assert run.output_tokens == 6 * 8
    assert run.e2e_ms is not None
    assert run.e2e_ms.n == 6
    assert all(record.says for record in of(said, Request) if record.error)
    assert active == 0


def test_a_request_that_never_ends_is_a_timeout_and_is_dropped_on_the_server() -> None:
    with MockServer("--ttft", "60") as server:
        _, said, run = measured(server.url, concurrency=2, requests=2, output=8, timeout=2.0, counters=False)
        stats = server.stats()
    assert dict(run.error_kinds) == {"timeout": 2}
    assert (stats["active"], stats["aborted"]) == (0, 2)
    assert "timeout" in (of(said, End)[0].error or "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_leaves_nothing_running_on_the_server(number: int) -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.05") as server:
        process = generator(
            {
                "url": server.url,
                "model": "mock",
                "concurrency": 16,
                "requests": 64,
                "output": 4000,
                "warmup": 0,
            }
        )
        _until(lambda: server.stats()["active"] == 16)
        process.send_signal(number)
        said = heard(process)
        stats = server.stats()
    assert stats["active"] == 0
    end = of(said, End)[0]
    assert (end.cancelled, end.done, said[-1]) == (True, 0, end)
    assert {record.error for record in of(said, Request)} == {"cancelled"}


def test_whoever_stops_reading_ends_the_run_and_nothing_is_left_on_the_server() -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.05") as server:
        process = generator(
            {
                "url": server.url,
                "model": "mock",
                "concurrency": 8,
                "requests": 64,
                "output": 4000,
                "warmup": 0,
            }
        )
        _until(lambda: server.stats()["active"] == 8)
        assert process.stdout is not None
        process.stdout.close()
        process.wait(120)
        assert server.stats()["active"] == 0


def test_nobody_listening_is_said_in_words() -> None:
    _, said, run = measured(f"127.0.0.1:{free_port()}", model="x", requests=2)
    assert "refused" in (run.error or "")
    assert of(said, End)[0].error == run.error


def test_a_wrong_key_is_said_and_the_right_one_is_in_no_argument() -> None:
    with MockServer("--ttft", "0", "--itl", "0", "--key", "s3cret") as server:
        _, said, run = measured(server.url, requests=2, output=4)
        assert "401" in (run.error or "")
        good = measured(server.url, {"MY_KEY": "s3cret"}, requests=2, output=4, key_env="MY_KEY")
    assert (good[2].errors, good[2].requests) == (0, 2)
    assert "s3cret" not in repr(good[1]) + repr(said)


def test_an_open_loop_sends_at_its_rate_and_tells_its_own_queue_apart() -> None:
    with MockServer("--ttft", "0.1", "--itl", "0.001") as server:
        fields: dict[str, Any] = {"rate": 50.0, "arrival": "constant", "requests": 20, "output": 4}
        _, said, free = measured(server.url, **fields)
        _, kept, tight = measured(server.url, concurrency=2, **fields)
    due = [record.due for record in sorted(of(said, Request), key=lambda one: one.n)]
    steps = [later - earlier for earlier, later in itertools.pairwise(due) if later and earlier]
    assert steps == pytest.approx([0.02] * 19, abs=1e-5)
    assert free.queue_ms is not None
    assert tight.queue_ms is not None
    assert tight.queue_ms.p50 > 200
    assert tight.ttft_ms is not None
    waits = [(record.first or 0) - (record.sent or 0) for record in of(kept, Request)]
    assert tight.ttft_ms.mean == pytest.approx(1000 * sum(waits) / 20, abs=0.001)


@pytest.mark.parametrize("mode", [{"concurrency": 4}, {"rate": 100.0}, {"rate": 500.0, "concurrency": 1}])
def test_after_its_time_nothing_more_is_sent_and_what_is_under_way_ends(mode: dict[str, Any]) -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.002") as server:
        _, said, run = measured(server.url, requests=100_000, duration=0.3, output=8, counters=False, **mode)
        stats = server.stats()
    assert 0 < run.requests < 1000
    assert (run.errors, run.cancelled, stats["aborted"]) == (0, False, 0)
    sent = [record.sent or 0.0 for record in of(said, Request)]
    assert max(sent) - min(sent) < 30, "all of them would take minutes"


def test_arrivals_by_chance_are_those_of_the_seed() -> None:
    with MockServer("--ttft", "0", "--itl", "0") as server:
        found = []
        for seed in (3, 3, 4):
            fields: dict[str, Any] = {"rate": 200.0, "requests": 10, "output": 2, "counters": False}
            _, said, _ = measured(server.url, seed=seed, **fields)
            due = sorted(record.due or 0 for record in of(said, Request))
            found.append([round(at - due[0], 4) for at in due])
    assert found[0] == found[1] != found[2]


def test_a_second_of_work_is_told_live_and_the_counters_are_read_around_it() -> None:
    with MockServer("--ttft", "0.02", "--itl", "0.01") as server:
        _, said, run = measured(server.url, concurrency=4, requests=4, output=300, warmup=0)
    tick = next(tick for tick in of(said, Tick) if tick.tok_s > 0)
    assert (tick.running, tick.total) == (4, 4)
    assert [line.when for line in of(said, Counters)] == ["before", "after"]
    assert run.server is not None
    assert run.server.output_tokens == 1200
    assert run.server.cache_hit_pct == 0


def test_a_server_without_usage_is_counted_by_chunks_and_that_is_said() -> None:
    with MockServer(*QUICK, "--k", "2", "--no-usage") as server:
        _, _, run = measured(server.url, requests=2, output=8)
    assert (run.tokens_by, run.output_tokens) == ("chunks", 8)


def test_usage_in_every_chunk_makes_the_time_between_tokens_exact() -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.009", "--k", "3") as server:
        _, _, run = measured(server.url, requests=2, output=30, chunk_usage=True)
    assert run.itl_by == "chunk usage"
    assert run.itl_ms is not None
    assert run.chunk_gap_ms is not None
    assert run.itl_ms.mean == pytest.approx(run.chunk_gap_ms.mean / 3, rel=0.02)


def _until(holds: Any, limit: float = 60.0) -> None:
    deadline = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def test_two_loads_at_once_are_told_by_the_servers_own_count() -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.01") as server:
        fields: dict[str, Any] = {"url": server.url, "requests": 8, "output": 40, "model": "mock"}
        theirs = generator({**fields, "requests": 400})
        while server.stats()["active"] == 0:
            time.sleep(0.01)
        workload, _, run = measured(**fields)
        theirs.kill()
        assert theirs.stdout is not None
        theirs.stdout.close()
        theirs.wait()
    (why,) = Measured(at=1.0, host="h", workload=workload, run=run).trouble[-1:]
    assert why.startswith("shared: the server generated")
    assert why.endswith(" tokens meanwhile, 320 of them ours")
