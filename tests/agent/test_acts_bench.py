"""Benchmarks as a process on the host: started once, followed over lost links, ended in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from specdash.agent.bench import FILE, _pack
from specdash.bench.events import AnyEvent, Begin, End, Output, take
from specdash.bench.figures import own_script, run_of
from specdash.bench.plan import parse
from specdash.monitor.frames import Bench
from specdash.sim.ports import free_port
from tests.agent.hands import Hands
from tests.bench.server import MockServer


def followed(hands: Hands, run: str, offset: int = 0) -> tuple[list[AnyEvent], Bench]:
    """Every event from there on, and the last frame."""
    hands.send("bench_follow", run=run, offset=offset)  # a frame may come before the answer
    said: list[AnyEvent] = []
    while True:
        frame = hands.wait(Bench, lambda frame: frame.run == run)
        said += [take(event) for event in frame.events]
        if frame.over:
            return said, frame


def test_a_run_on_the_host_gives_every_line_under_every_python(python: str, place: Path) -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.002", "--k", "3") as server, Hands(place, python) as hands:
        workload = {"url": server.url, "concurrency": 4, "requests": 8, "output": 12, "warmup": 2}
        answer = hands.do("bench", workload=workload)
        said, last = followed(hands, answer["token"])
    assert isinstance(said[0], Begin)
    assert isinstance(said[-1], End)
    run = run_of(parse(workload), said)
    assert (run.requests, run.errors, run.output_tokens, run.tokens_off) == (8, 0, 96, 0)
    assert last.exit == 0


def test_a_run_goes_on_without_an_agent_and_is_followed_from_where_it_was(place: Path) -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.02") as server:
        with Hands(place) as hands:
            workload = {"url": server.url, "requests": 6, "output": 20, "warmup": 0, "model": "mock"}
            run = hands.do("bench", token="bench-one", workload=workload)["token"]
            hands.send("bench_follow", run=run)
            first = hands.wait(Bench, lambda frame: len(frame.events) > 0)
        with Hands(place) as hands:
            again = hands.do("bench", token="bench-one", workload=workload)
            rest, _ = followed(hands, run, first.offset)
    assert again["repeat"]
    whole = [take(event) for event in first.events] + rest
    assert [type(event) for event in whole].count(Begin) == 1
    assert run_of(parse(workload), whole).requests == 6


def test_stopping_a_run_leaves_nothing_on_the_server(place: Path) -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.05") as server, Hands(place) as hands:
        workload = {"url": server.url, "concurrency": 8, "requests": 64, "output": 5000, "warmup": 0}
        run = hands.do("bench", workload=workload)["token"]
        _until(lambda: server.stats()["active"] == 8)
        stopped = hands.do("bench_stop", run=run)
        assert server.stats()["active"] == 0
        said, _ = followed(hands, run)
        assert not hands.do("bench_stop", run=run)["killed"]
    assert not stopped["killed"]
    end = said[-1]
    assert isinstance(end, End)
    assert end.cancelled


@pytest.mark.parametrize("brought", [{}, {"key": "s3cret-key"}], ids=["by the server", "by the request"])
def test_the_key_comes_from_the_server_or_the_request_and_is_in_no_argument_file_or_frame(
    place: Path, brought: dict[str, str]
) -> None:
    with MockServer("--ttft", "0", "--itl", "0", "--key", "s3cret-key") as server, Hands(place) as hands:
        env = {**os.environ, "SERVER_KEY": "an-old-key" if brought else "s3cret-key"}
        with subprocess.Popen(["sleep", "600"], env=env) as sleeper:
            workload = {"url": server.url, "requests": 2, "output": 4, "key_env": "SERVER_KEY"}
            answer = hands.do("bench", workload=workload, server=f"{sleeper.pid}:1", **brought)
            said, _ = followed(hands, answer["token"])
            sleeper.kill()
        run = run_of(parse(workload), said)
        kept = b"".join(path.read_bytes() for path in Path(answer["folder"]).iterdir() if path.is_file())
    assert (run.requests, run.errors) == (2, 0)
    assert b"s3cret-key" not in kept + b"".join(hands.raw)


def test_a_command_of_the_users_own_is_shown_live_and_its_number_is_taken(place: Path) -> None:
    script = "print('warming \\x1b[31mup'); print('Throughput: 1,082.5 tok/s')"
    with Hands(place) as hands:
        workload: dict[str, Any] = {"command": ["python3", "-c", script], "tok_s": r"Throughput:\s*([\d.,]+)"}
        said, _ = followed(hands, hands.do("bench", workload=workload)["token"])
    assert [event.line for event in said if isinstance(event, Output)] == [
        "warming up",
        "Throughput: 1,082.5 tok/s",
    ]
    run = own_script(said)
    assert (run.output_tok_s, run.error) == (1082.5, None)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["no-such-program"], "no-such-program: No such file"),
        (["sh", "-c", "echo 12 tok/s; exit 3"], "exit status 3"),
        (["echo", "nothing"], "matched no line"),
    ],
)
def test_a_command_that_gives_no_number_says_why(place: Path, command: list[str], says: str) -> None:
    with Hands(place) as hands:
        workload = {"command": command, "tok_s": r"([\d.]+) tok/s"}
        said, _ = followed(hands, hands.do("bench", workload=workload)["token"])
    run = own_script(said)
    assert says in (run.error or "")


def test_a_command_that_is_stopped_takes_its_children_along(place: Path) -> None:
    with Hands(place) as hands:
        marker = place / "pids"
        command = ["sh", "-c", f"sleep 300 & echo $! $$ > {marker}; wait"]
        run = hands.do("bench", workload={"command": command})["token"]
        _until(lambda: marker.exists() and len(marker.read_text().split()) == 2)
        hands.do("bench_stop", run=run)
        pids = [int(pid) for pid in marker.read_text().split()]
    _until(lambda: not any(_lives(pid) for pid in pids))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(holds: Any, limit: float = 60.0) -> None:
    deadline = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def test_the_file_on_the_host_is_one_that_python_runs(tmp_path: Path) -> None:
    _pack(str(tmp_path / FILE))
    nobody = f"http://127.0.0.1:{free_port()}"
    (tmp_path / "w.json").write_text(json.dumps({"url": nobody, "model": "x", "requests": 1}))
    ran = subprocess.run(
        [sys.executable, "-E", str(tmp_path / FILE), str(tmp_path / "w.json")], capture_output=True, text=True
    )
    assert "refused" in ran.stdout.splitlines()[-1]
    assert ran.stderr == ""


def test_whoever_follows_a_run_shows_it_that_somebody_listens(place: Path) -> None:
    with MockServer("--ttft", "0.01", "--itl", "0.02") as server, Hands(place) as hands:
        workload = {"url": server.url, "requests": 2, "output": 20, "warmup": 0, "model": "mock"}
        answer = hands.do("bench", workload=workload)
        (kept,) = place.rglob("workload.json")
        os.utime(kept, (1.0, 1.0))
        followed(hands, answer["token"])
        assert kept.stat().st_mtime > 1.0
