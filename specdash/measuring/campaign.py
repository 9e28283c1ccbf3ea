"""Several variants in turn: which is started when, and where a campaign that was cut off goes on. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import count, groupby
from typing import NamedTuple

import msgspec

from specdash.bench.plan import Workload
from specdash.bench.record import Measured


class Place(NamedTuple):
    """Where a campaign is."""

    stage: int
    """Which launch is next or at work, from 0; as many as there are: it is through."""
    runs: int = 0
    """Runs of every load that this launch has already."""
    launch: str = ""
    """The start of the server that these were made with."""


def order(variants: Sequence[str], launches: int) -> tuple[str, ...]:
    """A B C, then C B A, and so on: a steady drift of the host meets all alike."""
    out: list[str] = []
    for number in range(launches):
        out += variants if number % 2 == 0 else reversed(variants)
    return tuple(out)


def name_of(
    target: str,
    variants: Sequence[str],
    loads: Sequence[Workload],
    repeat: int,
    launches: int,
    server: str | None = None,
) -> str:
    """The same wish has the same name: asking again goes on. ``server``: the one that was named."""
    asked = [load.bare for load in loads]
    wish = msgspec.json.encode((target, server, variants, asked, repeat, launches), order="deterministic")
    return f"campaign-{hashlib.sha256(wish).hexdigest()[:8]}"


def place(kept: Iterable[Measured], stages: Sequence[str], loads: int, repeat: int) -> Place:
    """Where it goes on, from the runs that it has kept. A run that was stopped is made again."""
    whole = [run for run in kept if not run.run.cancelled and run.run.error is None and not run.claimed]
    here = Place(0)
    for (variant, launch), runs in groupby(
        sorted(whole, key=lambda run: run.at), key=lambda run: (run.variant, run.launch)
    ):
        if here.stage >= len(stages) or variant != stages[here.stage]:
            continue  # of a launch that something came between: it is done anew
        made = len(list(runs)) // loads
        here = Place(here.stage + 1) if made >= repeat else Place(here.stage, made, launch)
    return here


def unfinished(
    everything: Sequence[Measured], name: str, stages: Sequence[str], loads: int, repeat: int
) -> tuple[str, Place]:
    """The newest campaign of this name that is not through, else a new one: its tag, and where it is."""
    for number in count(1):
        tag = f"{name}-{number}"
        here = place([run for run in everything if tag in run.tags], stages, loads, repeat)
        if here.stage < len(stages):
            return tag, here
    raise AssertionError("unreachable")
