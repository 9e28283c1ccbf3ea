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
        """How much of all runs is through, 0 to 1."""
        if not self.under_way:
            return 1.0
        inside = self.tick.done / self.tick.total if self.tick and self.tick.total else 0.0
        return min(1.0, (max(0, self.run - 1) + min(1.0, inside)) / max(1, self.runs))

    @property
    def left_s(self) -> float | None:
        """Seconds until all runs are through, at the pace so far; None before that can be said."""
        if not self.under_way or self.tick is None or self.tick.left_s is None:
            return None
        each = [run.run.duration_s for run in self.done] or [self.tick.t + self.tick.left_s]
        return self.tick.left_s + (self.runs - self.run) * sum(each) / len(each)


def ticked(progress: Progress, tick: Tick, so_far: float | None = None) -> Progress:
    """One second later. ``so_far``: see :class:`Progress`."""
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
