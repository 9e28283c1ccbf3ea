"""On a machine with a GPU: what the agent reads of each card, and how long each of NVML's calls takes.

    python tests/gpu/latency.py [ROUNDS]

The agent's own readings are asked, through a binding whose calls are timed. Prints every field with its value
or the reason why there is none, and for each call how often it was made, its median and its worst.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from specdash.agent import health, readings


class Timed:
    """The binding, its calls timed."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.took: defaultdict[str, list[float]] = defaultdict(list)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._nvml, name)
        return self._clocked(name, value) if name.startswith("nvml") and callable(value) else value

    def _clocked(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def clocked(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                self.took[name].append((time.perf_counter() - began) * 1e3)

        return clocked


def main(rounds: int) -> None:
    """Print both tables."""
    import pynvml  # type: ignore[import-untyped]

    nvml = Timed(pynvml)
    nvml.nvmlInit()
    print("driver", nvml.nvmlSystemGetDriverVersion())
    ticks = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        print(f"\ncard {index}")
        for name, value in readings.identity(nvml, handle).items():
            print(f"  {name:18} {value}")
        each = readings.Readings()
        for number in range(rounds):
            began = time.perf_counter()
            values = each.read(nvml, handle, float(number))
            ticks.append((time.perf_counter() - began) * 1e3)
        for name, value in {**values, **health.read(nvml, handle)}.items():
            print(f"  {name:18} {value}")
    nvml.nvmlShutdown()
    print(f"\none round of a card: median {statistics.median(ticks):.3f} ms, worst {max(ticks):.3f} ms")
    print(f"\n{'call':44}{'calls':>7}{'median ms':>11}{'worst ms':>10}")
    for name, took in sorted(nvml.took.items(), key=lambda entry: -statistics.median(entry[1])):
        print(f"{name:44}{len(took):7}{statistics.median(took):11.3f}{max(took):10.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
