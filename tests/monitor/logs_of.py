"""The logs under tests/data/logs: written from format strings, with every milestone, and of real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "data" / "logs"
_ENDS = {b"N": b"\n", b"C": b"\r\n", b"R": b"\r", b"E": b""}


class Told(NamedTuple):
    """A log whose every milestone is known."""

    name: str
    data: bytes
    state: str
    speculation: str | None
    tp: int
    milestones: list[str]
    bars: list[str]


def told(name: str) -> Told:
    path = FOLDER / "sglang" / name
    truth = json.loads(path.with_suffix(".json").read_text())
    return Told(name=name, data=path.read_bytes(), **truth)


def told_names() -> list[str]:
    return sorted(path.name for path in (FOLDER / "sglang").glob("*.log"))


def timed(name: str) -> list[tuple[float, bytes]]:
    """Pieces with their arrival: ``SECONDS END TEXT``, END is N (LF), C (CR LF), R (CR) or E (none)."""
    pieces = []
    for line in (FOLDER / "timed" / f"{name}.txt").read_bytes().split(b"\n")[:-1]:
        at, end, text = line.split(b" ", 2)
        pieces.append((float(at), text + _ENDS[end]))
    return pieces


def timed_names() -> list[str]:
    return sorted(path.stem for path in (FOLDER / "timed").glob("*.txt"))


def whole(name: str) -> bytes:
    return b"".join(data for _, data in timed(name))
