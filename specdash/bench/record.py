"""A run as the history keeps it: what was asked, what came out, and everything it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from specdash.bench.figures import Run
from specdash.bench.plan import Workload
from specdash.bench.verdict import Sample, invalid

BASELINE: Final = "baseline"
SHARED: Final = 0.02
"""So much more than ours the server's counter may have grown by: a probe of somebody's is no load."""
MOST_BEYOND: Final = 0.2
MORE: Final = 0.1
"""So much more than was asked for an engine may count, e.g. the rest of its last draft."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The lowest, mean and highest of what was seen during a run."""

    low: float
    mean: float
    high: float


class During(msgspec.Struct, frozen=True, kw_only=True):
    """The host while it was measured, sampled once a second. None: nothing was seen of it."""

    samples: int = 0
    blind_s: float = 0.0
    """Seconds in which the link was lost: the load went on, and nothing of this was seen."""
    sm_mhz: Seen | None = None
    """Over all cards of the server."""
    power_w: Seen | None = None
    """Of one card."""
    temp_c: Seen | None = None
    util_pct: Seen | None = None
    throttled: Mapping[str, float] = {}
    """Reason → share of the samples in which some card was held back by it; idle is none."""
    at_once: Seen | None = None
    """Requests at the server, at work and waiting, ours and others'."""
    beyond: float = 0.0
    """Share of the server's reports in which these were more than ours can have been."""
    foreign: tuple[int, ...] = ()
    """Other processes that held memory on the server's cards."""
    running: Seen | None = None
    """Requests at work, by the server."""
    waiting: Seen | None = None
    kv_pct: Seen | None = None
    accept_length: float | None = None
    """By the server's gauge or log, the mean of what it told; where its counters tell, those count."""


HARMLESS: Final = frozenset({"power cap", "application clocks", "display clocks", "sync boost"})
"""Reasons for a lower clock, as the agent names them, that are no trouble: limits that an operator set."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: int | None = None
    """Given by the history."""
    at: float
    """When it began, seconds since the epoch."""
    host: str
    """The target or URL as the operator named it."""
    variant: str = BASELINE
    """What was different about this launch: ``baseline``, ``eagle3-3``."""
    launch: str = ""
    """Which start of the server: equal for runs of one start. Empty: not known."""
    name: str = ""
    """As the operator calls it."""
    tags: tuple[str, ...] = ()
    claimed: bool = False
    """A number from elsewhere: nothing but its rate is known."""
    workload: Workload | None = None
    """None: a claim, or a command of the operator's own."""
    command: tuple[str, ...] = ()
    run: Run
    during: During = During()
    fingerprint: Mapping[str, str] = {}
    """Field → value; see ``specdash.bench.fingerprint``."""
    speed: tuple[float, ...] = ()
    """Output tokens in each second, for charts."""

    @property
    def tok_s(self) -> float | None:
        """The headline: output tokens a second of all streams, between ramp-up and drain where known."""
        steady = self.run.steady
        found = steady.tok_s if steady is not None else self.run.output_tok_s
        return found or None

    @property
    def trouble(self) -> tuple[str, ...]:
        """Why it does not count; empty: it does."""
        run = self.run
        if self.claimed:
            return ()
        if run.error:
            return (run.error,)
        out = list(
            invalid(
                requests=run.requests,
                errors=run.errors,
                why=run.first_error,
                partial=_partial(run) if run.cancelled else None,
                limited=run.client.limited and not run.cancelled,  # a stop itself makes it late
                throttled=self._throttled(),
                foreign=self.during.foreign,
                shared=self._shared(),
            )
        )
        if self.tok_s is None:
            out.append("no tokens came")
        elif run.tokens_by == "chunks" and run.requests:
            out.append("the server counts no tokens (no usage): chunks are no tokens")
        elif (asked := self._asked()) is not None and run.output_tokens > asked * (1 + MORE):
            out.append(
                f"the server counts {run.output_tokens:,} tokens, and {asked:,} were asked for at most"
            )
        return tuple(out)

    @property
    def depends(self) -> dict[str, str]:
        """The fingerprint, and behind it what the cards showed meanwhile: for a look at what differs."""
        during = self.during
        seen = (("SM clock", during.sm_mhz, "MHz"), ("temperature", during.temp_c, "°C"))
        out = {
            **self.fingerprint,
            **{name: _extent(one, unit) for name, one, unit in seen if one is not None},
        }
        if held := [f"{reason} {100 * share:.0f} %" for reason, share in sorted(during.throttled.items())]:
            out["held back by"] = ", ".join(held)
        return out

    @property
    def cell(self) -> str:
        """What was asked, so far as runs must agree in it to be compared."""
        if self.workload is None:
            return " ".join(self.command) if self.command else "?"
        w = self.workload
        load = f"{w.streams} stream{'' if w.streams == 1 else 's'}"
        if w.rate is not None:
            cap = f", at most {w.concurrency} at once" if w.concurrency else ""
            load = f"{w.rate:g}/s {w.arrival}{cap}"
        more = "" if w.prompts == "builtin" else f", {w.prompts}"
        heat = "" if w.temperature == 0 else f", T {'default' if w.temperature is None else w.temperature}"
        ends = "" if w.ignore_eos else ", answers end by themselves"
        return f"{load}, {w.input} in {w.output} out, {w.api}{more}{heat}{ends}"

    def sample(self) -> Sample:
        """For the verdict."""
        server, requests = self.run.server, self.run.requests - self.run.errors
        return Sample(
            at=self.at,
            tok_s=self.tok_s or 0.0,
            launch=self.launch,
            trouble=self.trouble,
            hit_pct=server.cache_hit_pct if server is not None else None,
            length=self.run.output_tokens / requests if requests > 0 else None,
            run=self.id,
        )

    def _asked(self) -> int | None:
        """The most tokens that the answers can hold; None where each prompt has a length of its own."""
        load = self.workload
        if load is None or load.prompts != "builtin" or "max_tokens" in load.extra:
            return None
        return load.output * (self.run.requests - self.run.errors)

    def _shared(self) -> str | None:
        """That somebody else used the server meanwhile, with the figure; None: nothing tells so."""
        load, run, during = self.workload, self.run, self.during
        if load is None or run.cancelled:
            return None
        off = (run.tokens_off or 0) - load.output * run.errors
        if run.tokens_by == "usage" and off > max(SHARED * run.output_tokens, 2 * (load.streams or 1)):
            theirs = (run.tokens_off or 0) + run.output_tokens
            return f"the server generated {theirs:,} tokens meanwhile, {run.output_tokens:,} of them ours"
        if during.beyond > MOST_BEYOND and during.at_once is not None:
            return crowd(during.at_once.high, load.streams or 0)
        return None

    def _throttled(self) -> tuple[float, str] | None:
        bad = [(share, reason) for reason, share in self.during.throttled.items() if reason not in HARMLESS]
        return max(bad, default=None)


def crowd(high: float, ours: int) -> str:
    """``up to 9 requests at once, ours are 8 at most``."""
    return f"up to {high:.0f} requests at once, ours are {ours} at most"


def _partial(run: Run) -> str:
    return f"stopped before its end{f': {run.cancelled_by}' if run.cancelled_by else ''}"


def _extent(seen: Seen, unit: str) -> str:
    """``1755–1980 MHz``."""
    low, high = f"{seen.low:.0f}", f"{seen.high:.0f}"
    return f"{low if low == high else f'{low}–{high}'} {unit}"
