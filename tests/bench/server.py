"""The mock server as a process, and a generator that is let loose on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from specdash.bench import events
from specdash.bench.figures import Run, run_of
from specdash.bench.plan import Workload, parse

ROOT = Path(__file__).resolve().parents[2]
E = TypeVar("E", bound=events.Event)


class MockServer:
    """``with MockServer("--itl", "0.01") as server``."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "mock.py"), *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port: int = json.loads(self.process.stdout.readline())["port"]

    def __enter__(self) -> MockServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def stats(self) -> Any:
        """What it has sent, and when."""
        with urllib.request.urlopen(f"{self.url}/__stats", timeout=120) as answer:
            return json.load(answer)

    def forget(self) -> None:
        """What was is not counted any more."""
        urllib.request.urlopen(f"{self.url}/__reset", timeout=120).close()


def generator(
    workload: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    python: Sequence[str] = (sys.executable,),
) -> subprocess.Popen[bytes]:
    """A generator at work."""
    process = subprocess.Popen(
        [*python, "-m", "specdash.agent.loadgen"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(workload).encode() + b"\n")
    process.stdin.close()
    return process


def heard(process: subprocess.Popen[bytes]) -> list[events.AnyEvent]:
    """Everything it says until its end, each line as the client reads it."""
    assert process.stdout is not None
    with process.stdout:
        lines = [events.decode(line) for line in process.stdout]
    process.wait(120)
    return lines


def measured(
    url: str, env: Mapping[str, str] | None = None, **fields: Any
) -> tuple[Workload, list[events.AnyEvent], Run]:
    """One run against a server: the workload, what was said, the figures."""
    workload = parse({"url": url, "warmup": 0, **fields})
    said = heard(generator(json.loads(_json(workload)), env))
    return workload, said, run_of(workload, said)


def of(said: Sequence[events.AnyEvent], kind: type[E]) -> list[E]:
    """The lines of one kind."""
    return [event for event in said if isinstance(event, kind)]


def _json(workload: Workload) -> bytes:
    import msgspec

    return msgspec.json.encode(workload)
