"""How true the load generator's figures are, beside a peer's, against a server that knows when it sent what.

    python tests/perf/bench_accuracy.py [--streams 1,64,512] [--peer VLLM TOKENIZER] [--quick]

Prints a table and asserts nothing. Truth: the mock server's own times, read right before it hands a chunk to
the kernel. Error of a latency: told - true. ``VLLM`` is the ``vllm`` program of an environment that has it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.server import MockServer, measured  # noqa: E402

ITL = {1: 0.01, 64: 0.02, 512: 0.04}
TTFT = 0.05
HEAD = f"{'streams k role':16}{'who':8}{'TTFT':>9}{'true':>9}{'error':>8}"
HEAD += f"  {'gap':>8}{'true':>8}{'error p99':>10}"
TAIL = f"  {'TPOT':>7}{'true':>8}  {'tok/s':>8}{'true':>8}{'error':>8}  {'peak':>6}{'true':>7}  client"


def at(values: Sequence[float], share: float) -> float:
    """The value at that place of the sorted ones."""
    ordered = sorted(values)
    return ordered[math.floor(share * (len(ordered) - 1))]


def truth_of(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What the server did, in milliseconds and tokens per second."""
    gaps = [gap for one in records for gap in one["gaps"]]
    tokens = sum(one["tokens"] for one in records)
    first = records[0]["tokens"] - (records[0]["chunks"] - 1) * round(
        (records[0]["tokens"]) / records[0]["chunks"]
    )
    span = max(one["last"] for one in records) - min(one["asked"] for one in records)
    return {
        "ttft": 1000 * sum(one["first"] - one["asked"] for one in records) / len(records),
        "gap": 1000 * sum(gaps) / len(gaps),
        "gap99": 1000 * at(gaps, 0.99),
        "tpot": 1000
        * sum((one["last"] - one["first"]) / (one["tokens"] - max(1, first)) for one in records)
        / len(records),
        "tok_s": tokens / span,
        "peak": peak(records),
    }


def peak(records: Sequence[Mapping[str, Any]]) -> float:
    """Tokens in the best second (whole seconds from the first request)."""
    begin = min(one["asked"] for one in records)
    seconds: dict[int, float] = {}
    for one in records:
        when = one["first"]
        each = one["tokens"] / one["chunks"]
        for gap in [0.0, *one["gaps"]]:
            when += gap
            seconds[int(when - begin)] = seconds.get(int(when - begin), 0.0) + each
    return max(seconds.values())


def ours(server: MockServer, streams: int, requests: int, output: int) -> tuple[dict[str, float], str]:
    """Our figures."""
    server.forget()
    fields: dict[str, Any] = {"concurrency": streams, "requests": requests, "output": output, "input": 32}
    _, _, run = measured(server.url, counters=False, **fields)
    assert run.ttft_ms
    assert run.chunk_gap_ms
    assert run.tpot_ms
    client = run.client
    words = f"cpu {client.cpu_pct} % lag p99 {client.lag_ms_p99} ms {client.rss_mib} MB"
    words += f" {'LIMITED' if client.limited else ''}"
    told = {"ttft": run.ttft_ms.mean, "gap": run.chunk_gap_ms.mean, "gap99": run.chunk_gap_ms.p99}
    return {**told, "tpot": run.tpot_ms.mean, "tok_s": run.output_tok_s or 0.0}, words


def peers(
    server: MockServer, streams: int, requests: int, output: int, program: Sequence[str]
) -> tuple[dict[str, float], str]:
    """``vllm bench serve``'s figures of the same load."""
    server.forget()
    with tempfile.TemporaryDirectory() as folder:
        command = [program[0], "bench", "serve", "--backend", "openai-chat", "--base-url", server.url]
        command += ["--endpoint", "/v1/chat/completions", "--model", "mock", "--tokenizer", program[1]]
        command += ["--dataset-name", "random", "--random-input-len", "32", "--ignore-eos"]
        command += ["--random-output-len", str(output), "--num-prompts", str(requests), "--disable-tqdm"]
        command += ["--max-concurrency", str(streams), "--save-result", "--result-dir", folder]
        command += ["--result-filename", "r.json", "--percentile-metrics", "ttft,tpot,itl,e2el"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        kept = Path(folder) / "r.json"
        if not kept.exists():
            raise SystemExit(ran.stdout[-2000:] + ran.stderr[-2000:])
        told = json.loads(kept.read_text())
    return {
        "ttft": told["mean_ttft_ms"],
        "gap": told["mean_itl_ms"],
        "gap99": told["p99_itl_ms"],
        "tpot": told["mean_tpot_ms"],
        "tok_s": told["output_throughput"],
        "peak": told.get("max_output_tokens_per_s", float("nan")),
    }, ""


def row(case: str, who: str, told: Mapping[str, float], true: Mapping[str, float], words: str) -> str:
    """One line of the table."""
    wrong = told["tok_s"] / true["tok_s"] - 1
    text = f"{case:16}{who:8}{told['ttft']:9.2f}{true['ttft']:9.2f}{told['ttft'] - true['ttft']:+8.2f}"
    text += f"  {told['gap']:8.3f}{true['gap']:8.3f}{told['gap99'] - true['gap99']:+10.3f}"
    text += f"  {told['tpot']:7.3f}{true['tpot']:8.3f}  {told['tok_s']:8.1f}{true['tok_s']:8.1f}{wrong:+8.2%}"
    seen = f"{told['peak']:6.0f}" if "peak" in told else f"{'-':>6}"
    return text + f"  {seen}{true['peak']:7.0f}  {words}"


def say(line: str) -> None:
    """One line of the table, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Every case, ours and the peer's against the same server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", default="1,64,512")
    parser.add_argument("--peer", nargs=2, default=None)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    say(HEAD + TAIL)
    for streams in map(int, asked.streams.split(",")):
        for k, role in ((1, False), (1, True), (3, False), (3, True)):
            options = [
                "--ttft",
                str(TTFT),
                "--itl",
                str(ITL.get(streams, 0.02)),
                "--k",
                str(k),
                "--first",
                "1",
            ]
            requests = max(8, 2 * streams)
            output = (30 if asked.quick else 100) * k // (1 if streams < 512 else 2) + 1
            with MockServer(*options, *(["--role"] if role else [])) as server:
                case = f"{streams:4} {k} {'early' if role else '-'}"
                told, words = ours(server, streams, requests, output)
                say(row(case, "ours", told, truth_of(server.stats()["truth"]), words))
                if asked.peer:
                    told, words = peers(server, streams, requests, output, asked.peer)
                    # The first answer is its test request; it is none of its figures.
                    true = truth_of(server.stats()["truth"][1:])
                    say(row(case, "vllm", told, true, words))


if __name__ == "__main__":
    main()
