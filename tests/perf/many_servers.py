"""What one frame costs the monitor on a host with many servers: by the number of them.

    python tests/perf/many_servers.py [SERVERS…]

Prints microseconds a frame and how many times that is what it costs on a host with one server, and with
them the share of one core at the rates at which an agent sends them. Asserts nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specdash.monitor.frames import AnyFrame, Tick  # noqa: E402
from tests.monitor.crowd import FIRST, answer, crowd  # noqa: E402
from tests.monitor.frames_of import hello  # noqa: E402
from tests.perf.observe_cost import measure  # noqa: E402

SECONDS = 6
ONCE = {"tick": 1.0, "processes": 0.5}
"""Frames a second of a host."""
HTTP = 1.5
"""Answers a second of each of its servers."""


def life(many: int) -> Iterator[AnyFrame]:
    """So many servers that serve."""
    yield hello()
    for second in range(1, SECONDS):
        at = float(second)
        yield crowd(at, many)
        yield from (answer(at + n / many / 2, FIRST + n) for n in range(many))
        yield Tick(at=at + 0.9)


def main(numbers: list[int]) -> None:
    """Print the table."""
    one = {kind: spent / number for kind, (number, spent, _) in measure(life(1), 5).items()}
    print(f"{'servers':>8} {'frame':<10}{'µs each':>10}{'x of one':>10}{'% core':>8}")  # noqa: T201
    for many in numbers:
        for kind, (number, spent, _) in measure(life(many), 1).items():
            rate = HTTP * many if kind == "http" else ONCE.get(kind, 0.0)
            each, more = spent / number, spent / number / one[kind]
            row = f"{many:>8} {kind:<10}{each * 1e6:>10.0f}{more:>10.1f}{each * rate * 100:>8.1f}"
            print(row)  # noqa: T201


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, 15, 100, 500])
