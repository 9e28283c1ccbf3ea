"""What a server writes, and when: the logs of tests/data/logs/sglang, and what it prints while it serves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import cache
from typing import NamedTuple

from tests.monitor.logs_of import told

_STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: TP(\d+))?\]")
_BAR_S = re.compile(rb"\[(\d\d):(\d\d)<")
_LEFT_GIB = re.compile(rb"TP0\] .*avail mem=([\d.]+) GB")
_BATCH = re.compile(
    rb"Decode batch, #running-req: (\d+), #token: (\d+).*accept len: ([\d.]+)"
    rb".*gen throughput \(token/s\): ([\d.]+)"
)


class Piece(NamedTuple):
    """So much of a log, and when it was written."""

    at: float
    data: bytes


@cache
def pieces(name: str, ranks: int = 8) -> tuple[Piece, ...]:
    """A log under tests/data/logs/sglang of eight ranks, as it is written by so many."""
    out: list[Piece] = []
    at = begun = 0.0
    told_of = True
    for line in told(name).data.splitlines(keepends=True):
        stamp = _STAMP.match(line)
        if stamp:
            at = begun = _seconds(stamp[1])
            lines = _of_ranks(line, stamp[2], ranks)
            out += [Piece(at, one) for one in lines]
            told_of = bool(lines)
            continue
        if not told_of and not _BAR_S.search(line):
            continue  # it goes on with what a rank says that is not there
        for part in re.split(rb"(?=\r[^\n])", line):
            bar = _BAR_S.search(part)
            at = begun + 60 * int(bar[1]) + int(bar[2]) if bar else at
            out.append(Piece(at, part))
    return tuple(out)


def _seconds(stamp: bytes) -> float:
    return datetime.strptime(stamp.decode(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc).timestamp()


def _of_ranks(line: bytes, rank: bytes | None, ranks: int) -> list[bytes]:
    if rank is None:
        return [re.sub(rb"'?tp_size'?(: |=)8", rb"'tp_size'\g<1>%d" % ranks, line)]
    beside = {int(rank) + 8, 8} if rank == b"1" else {int(rank) + 8} - {8}
    named = [line.replace(b" TP" + rank, b" TP%d" % one, 1) for one in beside if one < ranks]
    return [line, *named] if int(rank) < ranks else []


def said(at: float, words: str) -> Piece:
    """A line of the main process."""
    return Piece(at, f"[{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M:%S}] {words}\n".encode())


class Load(NamedTuple):
    """What one batch line says."""

    at: float
    running: int
    tokens: int
    accept: float
    tok_s: float


def batches(
    since: float, until: float, accept: Callable[[float], float] | None = None, streams: int = 3
) -> list[Piece]:
    """So many requests at a time: every 7 s one ends and another begins."""
    out = []
    for second in range(int(until - since)):
        at = since + second
        ended, stamp = 55004 + second, f"[{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M:%S}"
        if second % 7 == 0:
            out.append(
                f'{stamp}] INFO:     192.0.2.10:{ended} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
                f"{stamp} TP0] Prefill batch, #new-seq: 1, #new-token: 900, #cached-token: 128,"
                f" token usage: 0.01, #running-req: {streams - 1}, #queue-req: 0, #pending-token: 0,"
                " cuda graph: False, input throughput (token/s): 128.57\n"
            )
        tokens = sum(1028 + 114 * (second % 7 + 7 * earlier) for earlier in range(streams))
        length = accept(at) if accept else 2.05 + (second * 5 % 17) / 25
        out.append(
            f"{stamp} TP0] Decode batch, #running-req: {streams}, #token: {tokens},"
            f" token usage: 0.01, accept len: {length:.2f}, accept rate: {(length - 1) / 3:.2f},"
            " cuda graph: True,"
            f" gen throughput (token/s): {47.3 * streams * length:.2f}, #queue-req: 0\n"
        )
    return [Piece(_seconds(text[1:20].encode()), text.encode()) for text in out]


def load_of(data: bytes, at: float) -> Load | None:
    """What it says if it is a batch line."""
    said = _BATCH.search(data)
    if said is None:
        return None
    return Load(at, int(said[1]), int(said[2]), float(said[3]), float(said[4]))


def memory_left(log: Sequence[Piece]) -> list[tuple[float, float]]:
    """When the first rank said that it has so many GiB left."""
    said = ((piece.at, _LEFT_GIB.search(piece.data)) for piece in log)
    return [(at, float(found[1])) for at, found in said if found]


def when(log: Sequence[Piece], words: bytes) -> float:
    """When these words were first written; long after all else where they never were."""
    return next((piece.at for piece in log if words in piece.data), math.inf)
