"""The load generator's figures in less than a minute, with the standard library alone (Python 3.8 and later).

    python3 tests/perf/bench_quick.py

Prints and asserts nothing. Accuracy: told against the mock server's own times. Cost: CPU time for each chunk
where the server sends flat out, with ``json`` and with ``orjson`` where that is importable. Start: from the
start of the process to its first request, wall and CPU. Headline: tokens a second by the rule of
``specdash.bench.steady``, from the generator's times, from the server's, and what the pace allows at most.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HIDE = "import sys\nsys.modules['orjson'] = sys.modules['msgspec'] = None\n"
TTFT = 0.05


class Server:
    """The mock server as a process."""

    def __init__(self, *options: str) -> None:
        words = [sys.executable, str(ROOT / "tests" / "bench" / "mock.py"), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{json.loads(self.process.stdout.readline())['port']}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def truth(self) -> list[Any]:
        """What it did, a request each, in the order of their ends."""
        with urllib.request.urlopen(f"{self.url}/__stats", timeout=60) as answer:
            return list(json.load(answer)["truth"])


def generate(
    server: Server,
    folder: str = "",
    program: tuple[str, ...] = ("-m", "specdash.agent.loadgen"),
    **fields: Any,
) -> list[Any]:
    """Every line of one run."""
    workload = {"url": server.url, "model": "mock", "warmup": 0, "counters": False, **fields}
    path = os.pathsep.join(filter(None, [folder, str(ROOT)]))
    ran = subprocess.run(
        [sys.executable, *program],
        input=json.dumps(workload),
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def steady_rule() -> Any:
    """``specdash.bench.steady`` as it is, without what its package needs."""

    class Struct:
        def __init_subclass__(cls, **_: object) -> None:
            pass

        def __init__(self, **fields: object) -> None:
            self.__dict__.update(fields)

    modules: dict[str, dict[str, Any]] = {
        "msgspec": {"Struct": Struct},
        "specdash.bench.events": {"Request": object},
    }
    kept = {name: sys.modules.get(name) for name in modules}
    for name, content in modules.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(content)
    spec = importlib.util.spec_from_file_location("steady", ROOT / "specdash" / "bench" / "steady.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, before in kept.items():
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
    return module.steady_part


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def mean(values: Any) -> float:
    """Of numbers."""
    found = list(values)
    return float(sum(found) / len(found))


def p99_of(records: list[Any]) -> float:
    """Milliseconds between chunks that one in a hundred gaps passes, from the histograms."""
    buckets: dict[int, int] = {}
    for record in records:
        for at, many in record["gaps"]["buckets"]:
            buckets[at] = buckets.get(at, 0) + many
    left = 0.99 * (sum(buckets.values()) - 1)
    for at in sorted(buckets):
        left -= buckets[at]
        if left < 0:
            return float(1.01**at / 1000)
    return 0.0


def accuracy(streams: int, itl: float, output: int, rule: Any) -> None:
    """One load: latencies, rate and headline, each beside the truth."""
    options = ("--ttft", str(TTFT), "--itl", str(itl), "--k", "1", "--first", "1", "--role")
    with Server(*options) as server:
        rounds = 8 if streams == 1 else 3
        said = generate(server, concurrency=streams, requests=rounds * streams, output=output)
        truth = server.truth()
    records = [line for line in said if line["event"] == "request"]
    client = said[-1]["client"]
    gaps = sorted(gap for one in truth for gap in one["gaps"])
    told, true = mean(r["first"] - r["sent"] for r in records), mean(t["first"] - t["asked"] for t in truth)
    gap = sum(r["gaps"]["sum_s"] for r in records) / sum(r["gaps"]["n"] for r in records)
    tokens = sum(r["tokens"] for r in records)
    rate = tokens / (max(r["last"] for r in records) - min(r["sent"] for r in records))
    exact = tokens / (max(t["last"] for t in truth) - min(t["asked"] for t in truth))
    ours = rule([types.SimpleNamespace(due=None, **_span(r, "sent")) for r in records])
    theirs = rule([types.SimpleNamespace(due=None, **_span(t, "asked")) for t in truth])
    most = streams * output / (TTFT + (output - 1) * itl)
    say(
        f"{streams:4} streams  TTFT {1000 * told:7.3f} ms ({1000 * (told - true):+.3f})"
        f"  gap {1000 * gap:7.3f} ms ({1000 * (gap - mean(gaps)):+.4f}),"
        f" p99 {p99_of(records) - 1000 * gaps[int(0.99 * (len(gaps) - 1))]:+.3f}"
        f"  {rate:9.1f} tok/s ({100 * (rate / exact - 1):+.3f} %)"
        f"  headline {ours.tok_s:9.1f}, by the server {theirs.tok_s:9.1f}, at most {most:9.1f}"
        f"  cpu {client['cpu_pct']} % lag p99 {client['lag_ms_p99']} ms {client['rss_mib']} MB"
        f" {client['why'] if client['limited'] else ''}",
    )


def _span(one: Any, sent: str) -> dict[str, Any]:
    return {
        "sent": one[sent],
        "first": one["first"],
        "last": one["last"],
        "tokens": one["tokens"],
        "chunks": 0,
    }


def cost(streams: int, hide: bool) -> None:
    """CPU time for each chunk: the least of three runs, and the most."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Server("--ttft", "0", "--itl", "0") as server:
        (Path(folder) / "sitecustomize.py").write_text(HIDE if hide else "")
        for _ in range(3):
            requests = 8 if streams == 1 else 2 * streams
            output = 2000 if streams < 512 else 250
            said = generate(server, folder, concurrency=streams, requests=requests, output=output)
            found.append(said[-1]["client"]["cpu_us_per_chunk"])
    parser, memory = said[0]["json"], said[-1]["client"]["rss_mib"]
    spent = f"{min(found):.2f} to {max(found):.2f} us/chunk"
    say(f"flat out  {streams:4} streams  {parser:7} {spent}  {memory} MB")


def start(times: int) -> None:
    """From the start of the process to its first request, by the server's clock; CPU of the whole run.

    As the one file that the agent makes of it on the host.
    """
    sys.path.insert(0, str(ROOT))
    from specdash.agent.bench import _pack

    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as folder, Server("--ttft", "0", "--itl", "0") as server:
        file = str(Path(folder) / "load.zip")
        _pack(file)
        for _ in range(times):
            began, before = time.monotonic(), os.times()
            generate(server, "", ("-E", file), requests=1, output=2)
            after = os.times()
            walls.append(server.truth()[-1]["asked"] - began)
            spent = after.children_user + after.children_system
            cpus.append(spent - before.children_user - before.children_system)
    say(f"start     {min(walls):.3f} to {max(walls):.3f} s to the first request; {mean(cpus):.3f} s of CPU")


def main() -> None:
    """Everything."""
    began = time.monotonic()
    say(f"python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    start(6)
    rule = steady_rule()
    for streams, itl, output in ((1, 0.01, 60), (8, 0.01, 100), (64, 0.02, 60), (512, 0.04, 30)):
        accuracy(streams, itl, output, rule)
    importable = importlib.util.find_spec("orjson") is not None
    for hide in (True, False) if importable else (True,):
        for streams in (1, 64, 512):
            cost(streams, hide)
    if not importable:
        say("orjson is not importable here")
    say(f"{time.monotonic() - began:.0f} s in all")


if __name__ == "__main__":
    main()
