"""How far a benchmark is: what the live line and the live pane show. Immutable."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Literal

import msgspec

from specdash.bench.events import AnyEvent, Request, Tick
from specdash.bench.figures import headline
from specdash.bench.plan import Workload
from specdash.bench.record import Measured

State = Literal["starting", "warming up", "measuring", "stopping", "done", "failed"]

MOST_SHOWN = 4096
"""Seconds of a run that are kept for the chart."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark under way."""

    host: str
    name: str
    variant: str
    server: str | None = None
    """Key of the server that is measured; a start of it anew is another one. None: only a URL is known."""
    state: State = "starting"
    run: int = 0
    """Which run is at work, from 1; 0 before the first."""
    runs: int = 1
    load: Workload | None = None
    tick: Tick | None = None
    """The newest of this run."""
    speed: tuple[float, ...] = ()
    """Output tokens of each second of this run's measured part."""
    so_far: float | None = None
    """Output tokens a second of this run so far: the headline of its requests that have ended, by the rule of
    a kept run. None: none has ended yet."""
    takes_s: float | None = None
    """All of this run with its warm-up, as it was last reckoned; None: nothing of it tells."""
    done: tuple[Measured, ...] = ()
    line: str = ""
    """The last line that a command of the operator's own has printed; remote text, cleaned."""
    accept_length: float | None = None
    """Of this moment, by the server."""
    break_even: float | None = None
    """What the accept length must pass, against a kept baseline of the same load."""
    steps: int | None = None
    baseline: float | None = None
    """tok/s of the newest kept baseline run under this load."""
    link: str | None = None
    """Why the link is lost: the load goes on on the host, and what is shown is as old as that."""
    shared: str | None = None
    """What shows that somebody else asks the server, too: this run will not count."""
    error: str | None = None
    """Why it ended before its time."""

    @property
    def under_way(self) -> bool:
        """Requests may be on their way."""
        return self.state not in ("done", "failed")

    @property
    def which(self) -> str:
        """``2 of 5``: which run of this benchmark is at work. ``run 12`` is a number of the history alone."""
        return f"{self.run} of {self.runs}" if self.run and self.runs > 1 else ""

    @property
    def now_tok_s(self) -> float | None:
        """Output tokens of the last second."""
        return self.speed[-1] if self.speed else None

    @property
    def unit(self) -> str:
        """Of the last second: ``chunks/s`` until the server has told how many tokens a chunk holds."""
        return "tok/s" if self.tick is None or self.tick.tokens_by == "usage" else "chunks/s"

    @property
    def median_tok_s(self) -> float | None:
        """Median of the runs under this load that are through and count."""
        mine = [run for run in self.done if run.workload == self.load and not run.trouble]
        rates = [run.tok_s for run in mine if run.tok_s is not None]
        return median(rates) if rates else None

    @property
    def share(self) -> float:
        """How much of all runs is through, 0 to 1; a warm-up is a part of its run. It never goes back."""
        if not self.under_way:
            return 1.0
        return min(1.0, (self._through + self._inside) / max(1, self.runs))

    @property
    def _through(self) -> int:
        """Runs before the one at work; after its end that one, too."""
        return max(len(self.done), self.run - 1)

    @property
    def _inside(self) -> float:
        """How much of the run at work is through."""
        tick = self.tick
        if tick is None or not tick.total:
            return 0.0
        warm = self.load.warmups if self.load is not None else 0
        ended = tick.done + tick.failed
        if tick.phase == "warmup":
            all_of_it = warm + self.load.requests if self.load is not None else tick.total
            return min(warm, ended) / max(1, all_of_it)
        return min(1.0, (warm + ended) / (warm + tick.total))

    @property
    def left_s(self) -> float | None:
        """Seconds until all runs are through, at the pace so far; None before that can be said."""
        if not self.under_way or self.state == "stopping":
            return None
        each = [whole_s(run) for run in self.done]
        mean = sum(each) / len(each) if each else None
        mine = self.takes_s if self.takes_s is not None else mean
        if mine is None:
            return None
        gone = self.tick.t if self.tick is not None else 0.0
        further = self.runs - self._through - 1
        return max(0.0, mine - gone) + further * (mean if mean is not None else mine)


def whole_s(run: Measured) -> float:
    """What a run took with its warm-up, whose requests are like the measured ones."""
    warm = run.workload.warmups if run.workload is not None else 0
    return run.run.duration_s * (1 + warm / max(1, run.run.requests))


def ticked(progress: Progress, tick: Tick, so_far: float | None = None) -> Progress:
    """One second later. ``so_far``: see :class:`Progress`."""
    # A warm-up tells less of a run than runs that are through do.
    if tick.left_s is not None and (tick.phase == "run" or not progress.done):
        progress = msgspec.structs.replace(progress, takes_s=tick.t + tick.left_s)
    if tick.phase == "warmup":
        return msgspec.structs.replace(progress, tick=tick, state="warming up")
    state: State = "stopping" if progress.state == "stopping" else "measuring"
    speed = (*progress.speed[-(MOST_SHOWN - 1) :], tick.tok_s)
    return msgspec.structs.replace(progress, tick=tick, state=state, speed=speed, so_far=so_far)


def counting(load: Workload) -> Callable[[AnyEvent], float | None]:
    """Takes what a run's generator prints, and says the headline so far (see :attr:`Progress.so_far`).

    It is reckoned anew once a twentieth more requests have ended: a long run costs no more for that.
    """
    records: list[Request] = []
    counted, found = 0, None

    def take(event: AnyEvent) -> float | None:
        nonlocal counted, found
        if isinstance(event, Request) and event.phase == "run":
            records.append(event)
        elif isinstance(event, Tick) and len(records) > counted and 20 * len(records) >= 21 * counted:
            counted, found = len(records), headline(load, records)
        return found

    return take
