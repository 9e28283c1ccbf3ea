"""Progress bars as tqdm writes them: the bytes that a log holds, without the library.

Format: tqdm 4.70 on a stream that is no terminal. Each update is CR and text, an update that is
shorter than the one before is padded with blanks, LF comes only when the bar is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MIN_INTERVAL = 0.1


def clock(seconds: float) -> str:
    """``03:07`` or ``1:03:07``."""
    minutes, s = divmod(int(seconds), 60)
    h, m = divmod(minutes, 60)
    return f"{h}:{m:02d}:{s:02d}" if h else f"{m:02d}:{s:02d}"


def _rate(per_second: float) -> str:
    if per_second >= 1:
        return f"{per_second:5.2f}it/s"
    return f"{1 / per_second:5.2f}s/it"


def _counts(n: int, total: int, elapsed: float, rate: float) -> str:
    if not rate:
        return f"{n}/{total} [{clock(elapsed)}<?, ?it/s]"
    return f"{n}/{total} [{clock(elapsed)}<{clock((total - n) / rate)}, {_rate(rate)}]"


def shard_text(label: str, n: int, total: int, elapsed: float, rate: float) -> str:
    """``Multi-thread loading shards:  44% Completed | 7/16 [00:00<00:00, 11.16it/s]``."""
    return f"{label}: {n * 100 / total:3.0f}% Completed | {_counts(n, total, elapsed, rate)}"


def graph_text(label: str, n: int, total: int, elapsed: float, rate: float) -> str:
    """``Capturing batches (bs=44 avail_mem=11.62 GB):   4%|▍         | 1/23 [00:00<00:10,  2.16it/s]``."""
    full, eighth = divmod(n * 80 // total, 8)
    meter = (_EIGHTHS[8] * full + (_EIGHTHS[eighth] if eighth else "")).ljust(10)
    prefix = f"{label}: " if label else ""
    return f"{prefix}{n * 100 / total:3.0f}%|{meter}| {_counts(n, total, elapsed, rate)}"


class _Meter:
    """The smoothed rate, and the padding over a longer text."""

    def __init__(self) -> None:
        self.rate = 0.0
        self._last = (0.0, 0)
        self._width = 0

    def advance(self, elapsed: float, n: int) -> float:
        seconds, count = elapsed - self._last[0], n - self._last[1]
        if seconds > 0 and count:
            now = count / seconds
            self.rate = 0.3 * now + 0.7 * self.rate if self.rate else now
        self._last = (elapsed, n)
        return self.rate

    def pad(self, text: str) -> str:
        padded = text.ljust(self._width)
        self._width = len(text)
        return padded


def shards(label: str, ends: Sequence[float]) -> Iterator[tuple[float, str]]:
    """(seconds after the bar's begin, text) of a load whose k-th shard is done at ``ends[k]``."""
    total, meter = len(ends), _Meter()
    yield 0.0, meter.pad(shard_text(label, 0, total, 0.0, 0.0))
    for n, end in enumerate(ends, 1):
        rate = meter.advance(end, n)
        yield end, meter.pad(shard_text(label, n, total, end, rate))
    yield ends[-1], meter.pad(shard_text(label, total, total, ends[-1], total / ends[-1]))


def captures(labels: Sequence[str], ends: Sequence[float]) -> Iterator[tuple[float, str]]:
    """(seconds, text) of a capture: the label names a shape *before* it is captured, ``n`` lags behind.

    tqdm thins the counter to ten updates a second, but a new label is always written, with the last
    counter: the shape tells the position, ``n`` is a lower bound.
    """
    total, meter = len(ends), _Meter()
    yield 0.0, meter.pad(graph_text("", 0, total, 0.0, 0.0))
    shown, shown_at, begun = 0, 0.0, 0.0
    for n, (label, end) in enumerate(zip(labels, ends, strict=True), 1):
        yield begun, meter.pad(graph_text(label, shown, total, begun, meter.rate))
        if end - shown_at >= _MIN_INTERVAL:
            shown, shown_at = n, end
            yield end, meter.pad(graph_text(label, n, total, end, meter.advance(end, n)))
        begun = end
    yield ends[-1], meter.pad(graph_text(labels[-1], total, total, ends[-1], total / ends[-1]))
