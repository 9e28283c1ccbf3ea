"""What the raw folders have in common, and how it becomes frames.

Raw logs are lines of ``<unix time> <T> <text>``, where T says how the segment ended. Answers are those of a
client that asked far more often than we do: the ones that our own polls would have seen are picked out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdash.monitor import frames
from specdash.monitor.polling import CONNECT, HEALTH, LOADS, METRICS, MODELS

ENDS = {b"N": b"\n", b"C": b"\r\n", b"R": b"\r", b"E": b""}
GATHER_S = 0.25
"""Bytes that came within this time are one frame, as the agent reads a file four times a second."""
FRAME_BYTES = 48 << 10
TOTAL_MIB = 143771
POWER_LIMIT_W = 700.0
"""``nvidia-smi -q`` of the cards that were recorded."""


@dataclass(frozen=True)
class Answer:
    """One answer of a server to the raw client."""

    began: float
    path: str
    ms: float
    status: int | None
    error: str | None
    body: str

    @property
    def at(self) -> float:
        """When it was there."""
        return self.began + self.ms / 1000


ERRORS = {"ConnectError": "refused", "ReadTimeout": "timeout", "ConnectTimeout": "timeout"}


def error_word(name: str | None) -> str | None:
    """The agent's word for the raw client's exception."""
    return None if name is None else ERRORS.get(name, "reset")


def json_lines(path: Path) -> Iterator[Any]:
    """Every line, decoded."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def hello(at: float, host: str, cpus: int) -> Iterator[frames.AnyFrame]:
    """What stands at the beginning of every recording."""
    yield frames.Link(at=at, state="live")
    yield frames.Hello(
        at=at,
        proto=frames.PROTOCOL,
        specdash="0.1.0",
        host=host,
        boot=f"recorded-{host}",
        pid=2,
        uid=0,
        user="root",
        python="3.12.3",
        kernel="6.18",
        verbs=("look",),
        cpus=cpus,
    )


def ticks(begin: float, end: float) -> Iterator[frames.AnyFrame]:
    """One a second."""
    for second in range(int(end - begin) + 1):
        yield frames.Tick(at=begin + second)


def log_frames(raw: Path, path: str, inode: int, begin: float, end: float) -> Iterator[frames.AnyFrame]:
    """The bytes of a log with the times of their arrival."""
    offset = 0
    first = True
    for at, data in _gathered(_segments(raw)):
        if not begin <= at <= end:
            continue
        yield frames.Log(
            at=at,
            path=path,
            file=f"1:{inode}",
            offset=offset,
            size=offset + len(data),
            mtime=at,
            break_="start" if first else None,
            **_payload(data),
        )
        offset, first = offset + len(data), False


def _payload(data: bytes) -> dict[str, Any]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"data": data}


def _segments(raw: Path) -> Iterator[tuple[float, bytes]]:
    for line in raw.read_bytes().split(b"\n")[:-1]:
        at, end, text = line.split(b" ", 2)
        yield float(at), text + ENDS[end]


def _gathered(segments: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    began, newest, data = 0.0, 0.0, b""
    for at, segment in segments:
        if data and (at - began >= GATHER_S or len(data) + len(segment) > FRAME_BYTES):
            yield newest, data
            data = b""
        if not data:
            began = at
        newest, data = max(at, began), data + segment
    if data:
        yield newest, data


EVERY = {HEALTH: (2.0, 30.0), MODELS: (2.0, 30.0), LOADS: (2.0, 2.0), METRICS: (5.0, 5.0)}
"""Seconds between two polls of a path before and after its first good answer."""


def polls(answers: Iterable[Answer], server: str) -> Iterator[frames.AnyFrame]:
    """The answers that our polls would have seen: by the server's state, one request in flight."""
    free_at = -1.0
    due: dict[str, float] = {}
    good: set[str] = set()
    listening = ready = False
    for answer in sorted(answers, key=lambda one: one.began):
        refused = answer.error == "refused"
        path = CONNECT if refused or not listening else answer.path
        if path not in (CONNECT, HEALTH, MODELS) and not ready:
            continue
        if (
            answer.began < free_at
            or answer.began < due.get(path, 0.0)
            or (path != CONNECT and path not in EVERY)
        ):
            continue
        if path == METRICS and not answer.body:
            continue  # nobody kept this page
        listening = not refused
        if path == CONNECT:
            due = {CONNECT: answer.began + 2.0}
            yield frames.Http(
                at=answer.at, server=server, path=CONNECT, error="refused" if refused else None, ms=answer.ms
            )
            continue
        free_at = answer.at
        if answer.status == 200:
            good.add(path)
        ready = ready or HEALTH in good
        due[path] = answer.began + EVERY[path][path in good]
        yield frames.Http(
            at=answer.at,
            server=server,
            path=path,
            status=answer.status,
            error=answer.error,
            ms=answer.ms,
            body=_reduced(path, answer.body),
        )


def _reduced(path: str, body: str) -> str:
    """A list of models that was cut while it was recorded, as far as its names go."""
    if path != MODELS:
        return body
    data = [{"id": name, "object": "model"} for name in re.findall(r'"id":"([^"]+)","object":"model"', body)]
    return json.dumps({"object": "list", "data": data}) if data else ""


def environment(pairs: Iterable[str]) -> dict[str, str]:
    """``NAME=value`` as a dictionary; the recorder leaves out what a recording does not keep."""
    return dict(pair.split("=", 1) for pair in pairs)
