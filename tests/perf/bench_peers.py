"""Our load generator beside other people's, each against a server that knows when it sent what.

    python tests/perf/bench_peers.py --tokenizer FOLDER [--vllm PROGRAM] [--sglang FILE PYTHON]
        [--aiperf PROGRAM] [--guidellm PROGRAM] [--cases 1:1,64:1,512:1,1:3]

Each peer is named by its own executable and is run only where it is named; SGLang's client is the ``_bench``
library of its wheel and a Python of its version. Prints a table and asserts nothing. A case is streams and
tokens in a chunk; every answer begins with an early role chunk, as gateways send it. Error of a latency: told
- true. CPU and wall time are of the whole program, its start included. What a peer cannot tell is ``-``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.server import MockServer  # noqa: E402
from tests.perf.bench_accuracy import ITL, TTFT, ours, say, truth_of  # noqa: E402

LIMIT_S = 150.0
LOAD_LIBRARY = (
    "import importlib.util, sys\n"
    "spec = importlib.util.spec_from_file_location('_bench', sys.argv[1])\n"
    "module = importlib.util.module_from_spec(spec)\n"
    "spec.loader.exec_module(module)\n"
    "module.run_argv(['sglang-bench', *sys.argv[2:]])\n"
)
HEAD = (
    f"{'streams k':10}{'who':10}{'TTFT':>9}{'true':>8}{'error':>9}  {'gap':>8}{'true':>8}{'p99 error':>10}"
    f"  {'tok/s':>9}{'true':>9}{'error':>8}  {'wall':>6}{'cpu':>7}"
)


class Load(NamedTuple):
    """What each is asked to do."""

    url: str
    streams: int
    requests: int
    output: int
    tokenizer: str
    folder: Path


class Peer(NamedTuple):
    """Somebody else's program."""

    name: str
    command: Callable[[Load], list[str]]
    figures: Callable[[Load], Mapping[str, float]]
    before: int = 0
    """Requests that it sends before those that it counts."""


def vllm(program: str) -> Peer:
    """``vllm bench serve``."""

    def command(load: Load) -> list[str]:
        words = [program, "bench", "serve", "--backend", "openai-chat", "--base-url", load.url]
        words += ["--endpoint", "/v1/chat/completions", "--model", "mock", "--tokenizer", load.tokenizer]
        words += ["--dataset-name", "random", "--random-input-len", "32", "--ignore-eos", "--disable-tqdm"]
        words += ["--random-output-len", str(load.output), "--num-prompts", str(load.requests)]
        words += ["--max-concurrency", str(load.streams), "--percentile-metrics", "ttft,tpot,itl"]
        return [*words, "--save-result", "--result-dir", str(load.folder), "--result-filename", "out.json"]

    return Peer("vllm", command, lambda load: _flat(json.loads((load.folder / "out.json").read_text())), 1)


def sglang(library: str, python: str) -> Peer:
    """SGLang's client, which is written in Rust."""

    def command(load: Load) -> list[str]:
        words = [python, "-c", LOAD_LIBRARY, library, "--backend", "sglang-oai-chat", "--model", "mock"]
        words += ["--tokenizer", load.tokenizer, "--dataset-name", "random-ids", "--random-input-len", "32"]
        words += ["--random-range-ratio", "1", "--base-url", load.url, "--warmup-requests", "0"]
        words += ["--random-output-len", str(load.output), "--num-prompts", str(load.requests)]
        return [
            *words,
            "--max-concurrency",
            str(load.streams),
            "--output-file",
            str(load.folder / "out.json"),
        ]

    return Peer("sglang", command, lambda load: _flat(json.loads((load.folder / "out.json").read_text())))


def _flat(told: Mapping[str, Any]) -> dict[str, float]:
    """As vLLM and SGLang write it."""
    return {
        "ttft": told["mean_ttft_ms"],
        "gap": told["mean_itl_ms"],
        "gap99": told["p99_itl_ms"],
        "tok_s": told["output_throughput"],
    }


def aiperf(program: str) -> Peer:
    """NVIDIA's."""

    def command(load: Load) -> list[str]:
        words = [program, "profile", "-m", "mock", "--endpoint-type", "chat", "--streaming", "--isl", "32"]
        words += ["--osl", str(load.output), "--tokenizer", load.tokenizer, "--use-server-token-count"]
        words += ["--ui", "none", "--url", load.url, "--request-count", str(load.requests)]
        return [*words, "--concurrency", str(load.streams), "--output-artifact-dir", str(load.folder)]

    def figures(load: Load) -> dict[str, float]:
        told = json.loads((load.folder / "profile_export_aiperf.json").read_text())
        gap = told["inter_chunk_latency"]
        return {
            "ttft": told["time_to_first_token"]["avg"],
            "gap": gap["avg"],
            "gap99": gap["p99"],
            "tok_s": told["output_token_throughput"]["avg"],
        }

    return Peer("aiperf", command, figures)


def guidellm(program: str) -> Peer:
    """It tells no gaps between chunks: its ITL is the mean of each request, per token."""

    def command(load: Load) -> list[str]:
        words = [program, "run", "--tokenizer", f"kind=hf_auto,model={load.tokenizer}", "--disable-progress"]
        words += ["--backend", f"kind=openai_http,target={load.url},model=mock"]
        words += ["--data", f"kind=synthetic_text,prompt_tokens=32,output_tokens={load.output}"]
        words += ["--profile", f"kind=concurrent,streams={load.streams}"]
        words += ["--constraint", f"kind=max_requests,count={load.requests}"]
        return [*words, "--output", f"kind=json,path={load.folder / 'out.json'}"]

    def figures(load: Load) -> dict[str, float]:
        told = json.loads((load.folder / "out.json").read_text())["benchmarks"][0]["metrics"]
        mean = {name: told[name]["successful"]["mean"] for name in ("time_to_first_token_ms",)}
        rate = told["output_tokens_per_second"]["successful"]["mean"]
        return {"ttft": mean["time_to_first_token_ms"], "tok_s": rate}

    return Peer("guidellm", command, figures)


def measure(peer: Peer, load: Load) -> tuple[Mapping[str, float] | None, str]:
    """Its figures, and what it said where there are none."""
    # Without the variable for an offline hub: one of them takes a folder for a name then.
    env = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    try:
        ran = subprocess.run(
            peer.command(load),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            cwd=load.folder,
            env={**env, "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1"},
        )
        return peer.figures(load), ""
    except subprocess.TimeoutExpired:
        return None, f"no end within {LIMIT_S:.0f} s"
    except (OSError, KeyError, ValueError) as error:
        words = (ran.stdout + ran.stderr).strip().splitlines() if not isinstance(error, OSError) else []
        return None, f"{type(error).__name__}: {error}: {words[-1] if words else ''}"[:160]


def row(
    case: str, who: str, told: Mapping[str, float], true: Mapping[str, float], spent: tuple[float, float]
) -> str:
    """One line of the table."""
    text = f"{case:10}{who:10}{told['ttft']:9.2f}{true['ttft']:8.2f}{told['ttft'] - true['ttft']:+9.2f}"
    if "gap" in told:
        text += f"  {told['gap']:8.3f}{true['gap']:8.3f}{told['gap99'] - true['gap99']:+10.3f}"
    else:
        text += f"  {'-':>8}{true['gap']:8.3f}{'-':>10}"
    text += f"  {told['tok_s']:9.1f}{true['tok_s']:9.1f}{told['tok_s'] / true['tok_s'] - 1:+8.2%}"
    return text + f"  {spent[0]:5.1f}s{spent[1]:6.1f}s"


def spent_since(began: float, before: resource.struct_rusage) -> tuple[float, float]:
    """Wall and CPU seconds of what ran meanwhile."""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu


def case_of(streams: int, k: int, peers: Sequence[Peer], tokenizer: str) -> None:
    """One load, by each."""
    options = ["--ttft", str(TTFT), "--itl", str(ITL.get(streams, 0.02)), "--k", str(k), "--first", "1"]
    requests, output = max(8, 2 * streams), 30 * k // (1 if streams < 512 else 2) + 1
    case = f"{streams:4} {k}"
    with MockServer(*options, "--role") as server:
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        told, words = ours(server, streams, requests, output)
        spent = spent_since(began, before)
        say(f"{row(case, 'ours', told, truth_of(server.stats()['truth']), spent)}  {words}")
        for peer in peers:
            server.forget()
            with tempfile.TemporaryDirectory() as folder:
                load = Load(server.url, streams, requests, output, tokenizer, Path(folder))
                began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
                found, why = measure(peer, load)
                spent = spent_since(began, before)
            truth = server.stats()["truth"][peer.before :]
            if found is None or not truth:
                say(f"{case:10}{peer.name:10}{why or 'no request came'}")
            else:
                say(row(case, peer.name, found, truth_of(truth), spent))


def main() -> None:
    """Every case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--cases", default="1:1,64:1,512:1,1:3")
    for name in ("vllm", "aiperf", "guidellm"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--sglang", nargs=2)
    asked = parser.parse_args()
    peers = [make(path) for make in (vllm, aiperf, guidellm) if (path := getattr(asked, make.__name__))]
    peers += [sglang(*asked.sglang)] if asked.sglang else []
    say(f"python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    say(HEAD)
    for case in asked.cases.split(","):
        streams, _, k = case.partition(":")
        case_of(int(streams), int(k or 1), peers, asked.tokenizer)


if __name__ == "__main__":
    main()
