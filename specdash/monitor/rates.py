"""The figures that a serving engine prints: tokens a second, requests, KV cache, acceptance."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from specdash.engines.schema import Marker
from specdash.monitor.acceptance import LOOKED_AT, Acceptance, accepted
from specdash.monitor.numerals import real, whole
from specdash.monitor.serverparts import Figures

RECENT = 8
"""So many of the newest lines are looked at together; a log may hold millions of them."""

FEW = 2
"""So few requests at work while others wait: one of them keeps the batch."""


class Line(NamedTuple):
    """What one line of figures says of the load."""

    flows: bool
    running: int
    waiting: int
    time: str | None

    @property
    def zero(self) -> bool:
        """Requests at work, and no tokens."""
        return self.running > 0 and not self.flows

    @property
    def crowded(self) -> bool:
        """One or two requests at work, others waiting, tokens flowing."""
        return self.flows and 0 < self.running <= FEW and self.waiting > 0


MOST_SOURCES = 512
"""Groups that print figures; no log can make us hold more."""


class RatesState(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered between two pieces of a log."""

    sources: Mapping[str, Figures] = {}
    """By rank or engine number: each data-parallel group prints its own line."""
    after_idle: frozenset[str] = frozenset()
    """Sources whose next rate includes idle time, and is far too low."""
    accept_len: float | None = None
    """Told on a line of its own."""
    acceptance: Acceptance = Acceptance()
    """By lines of which none is passed over."""
    lengths: Mapping[str, tuple[float, ...]] = {}
    """The newest accept lengths of each source, where old lines are passed over."""
    batch_at: float | None = None
    """When a line last reported that tokens flow."""
    flow_at: float | None = None
    """The same, of lines that come with the tokens and do not sum up what is past."""
    zero_since: float | None = None
    """Arrival of the first of the latest lines that say: requests at work, no tokens."""
    recent: tuple[Line, ...] = ()
    """The newest lines, oldest first."""


class Rates:
    """Takes figures lines; ``figures`` is their sum."""

    def __init__(self, state: RatesState) -> None:
        """Go on from what was remembered."""
        self._sources = dict(state.sources)
        self._after_idle = set(state.after_idle)
        self._accept_len = state.accept_len
        self._acceptance = state.acceptance
        self._lengths = dict(state.lengths)
        self.batch_at = state.batch_at
        self.flow_at = state.flow_at
        self.zero_since = state.zero_since
        self._recent = state.recent

    def take(
        self,
        marker: Marker,
        told: Mapping[str, str | None],
        rank: str | None,
        at: float | None,
        time: str | None = None,
        steps: int | None = None,
    ) -> bool:
        """One line, printed at ``time``. True where it shows that tokens flow.

        ``steps``: tokens drafted for each step, where that is known.
        """
        source = told.get("source") or rank or ""
        if source not in self._sources and len(self._sources) >= MOST_SOURCES:
            return False
        self._take_length(marker, told, source, time, steps)
        if marker.speculation:
            return False
        if marker.idle:
            self._take_idle(told, source, at)
            return True
        rate = real(told.get("tok_s"))
        flows = bool(rate) or bool(real(told.get("prompt_tok_s")))
        if source in self._after_idle:
            self._after_idle.discard(source)
            rate = None
        self._sources[source] = Figures(
            at=at,
            source="log",
            tok_s=rate,
            running=whole(told.get("running")),
            waiting=whole(told.get("waiting")),
            kv_pct=_kv_pct(told),
            accept_len=real(told.get("accept_len")),
        )
        self._remember(
            Line(flows, whole(told.get("running")) or 0, whole(told.get("waiting")) or 0, time), at
        )
        if flows:
            self.batch_at = at
            self.flow_at = self.flow_at if marker.late else at
        return flows

    def _take_length(
        self,
        marker: Marker,
        told: Mapping[str, str | None],
        source: str,
        time: str | None,
        steps: int | None,
    ) -> None:
        """How many tokens were accepted at a time, where the line tells."""
        length = real(told.get("accept_len"))
        if length is not None and marker.serves:
            self._acceptance = accepted(self._acceptance, length, time, steps)
        elif length is not None:
            self._lengths[source] = (*self._lengths.get(source, ()), length)[-LOOKED_AT:]
        if marker.speculation:
            self._accept_len = length

    def _take_idle(self, told: Mapping[str, str | None], source: str, at: float | None) -> None:
        """A line that comes while nothing is asked of the server."""
        if told.get("idle"):
            self._after_idle.add(source)
        self._sources[source] = msgspec.structs.replace(
            self._sources.get(source, Figures()),
            at=at,
            kv_pct=_kv_pct(told),
            waiting=whole(told.get("waiting")),
        )
        self.batch_at = self.flow_at = at

    def _remember(self, line: Line, at: float | None) -> None:
        if not line.zero:
            self.zero_since = None
        elif not self.zero_lines:
            self.zero_since = at
        self._recent = (*self._recent, line)[-RECENT:]

    @property
    def zero_lines(self) -> int:
        """How many of the newest lines in a row say: requests at work, no tokens."""
        return _last(self._recent, lambda line: line.zero)

    @property
    def crowded_since(self) -> str | None:
        """Printed time of the first of the newest lines in a row that tell of a queue behind one request."""
        crowded = _last(self._recent, lambda line: line.crowded)
        return self._recent[-crowded].time if crowded else None

    def acceptance(self, steps: int | None) -> Acceptance:
        """What speculation brings; of lines that come with every batch only the newest are known."""
        if not self._lengths:
            return self._acceptance
        told = Acceptance()
        for lengths in zip(*self._lengths.values(), strict=False):
            told = accepted(told, sum(lengths) / len(lengths), None, steps)
        return told

    @property
    def figures(self) -> Figures:
        """All sources together: rates and requests add up, the fullest KV cache counts."""
        sources = list(self._sources.values())
        if not sources and self._accept_len is None:
            return Figures()
        accepted = [f.accept_len for f in sources if f.accept_len is not None]
        mean = sum(accepted) / len(accepted) if accepted else None
        return Figures(
            at=max((f.at for f in sources if f.at is not None), default=None),
            source="log",
            tok_s=_sum([f.tok_s for f in sources]),
            running=_total([f.running for f in sources]),
            waiting=_total([f.waiting for f in sources]),
            kv_pct=max((f.kv_pct for f in sources if f.kv_pct is not None), default=None),
            accept_len=self._accept_len if self._accept_len is not None else mean,
        )

    def state(self) -> RatesState:
        """What to remember."""
        return RatesState(
            sources=self._sources,
            after_idle=frozenset(self._after_idle),
            accept_len=self._accept_len,
            acceptance=self._acceptance,
            lengths=self._lengths,
            batch_at=self.batch_at,
            flow_at=self.flow_at,
            zero_since=self.zero_since,
            recent=self._recent,
        )


def _last(lines: tuple[Line, ...], says: Callable[[Line], bool]) -> int:
    return sum(1 for _ in itertools.takewhile(says, reversed(lines)))


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _kv_pct(told: Mapping[str, str | None]) -> float | None:
    """Some engines print a fraction, others per cent."""
    fraction = real(told.get("kv_fraction"))
    return real(told.get("kv_pct")) if fraction is None else fraction * 100
