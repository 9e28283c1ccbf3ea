"""The runbooks that can be run: those of the profile, and those that come with specdash."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec

from specdash.errors import SpecdashError
from specdash.profile.document import Benchmark, Profile, Runbook, RunbookStep
from specdash.profile.loading import parse as parse_profile
from specdash.profile.steps import kinds_of
from specdash.wording import nearest

SHIPPED: Final = "shipped.toml"
_OPERATIONS: Final[Mapping[str, str]] = {
    "check": "preflight",
    "kill": "stop the server",
    "clean": "clean the GPUs",
    "launch": "start the server",
    "restart": "restart the server",
    "patch": "the known fix",
}


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """A named procedure."""

    name: str
    about: str = ""
    steps: tuple[RunbookStep, ...]
    ours: bool = False
    """It came with specdash."""
    lacks: str | None = None
    """Why it cannot be run by this profile."""

    @property
    def acts(self) -> bool:
        """Some step changes the host."""
        return any(map(changes, self.steps))


def _ours() -> Profile:
    return parse_profile((files("specdash.runbooks") / SHIPPED).read_text(), SHIPPED)


def benchmarks(profile: Profile) -> dict[str, Benchmark]:
    """Those of the profile, and ours where it has none of that name."""
    return {**_ours().benchmarks, **profile.benchmarks}


class NoBook(SpecdashError):
    """There is no runbook of that name, or it cannot be run."""

    exit_code = 2


def books(profile: Profile, host: str | None = None) -> dict[str, Book]:
    """All of them by name, the profile's own first; one of its own takes the place of one of ours.

    ``host``: its name in the profile; None: of any host.
    """
    found = {name: _book(name, book, profile, host) for name, book in profile.runbooks.items()}
    for name, book in _ours().runbooks.items():
        found.setdefault(name, msgspec.structs.replace(_book(name, book, profile, host), ours=True))
    return found


def _book(name: str, book: Runbook, profile: Profile, host: str | None) -> Book:
    about = book.about or ""
    if book.each is None:
        return Book(name=name, about=about, steps=book.steps * book.rounds)
    variants = [
        name
        for name, variant in profile.variants.items()
        if host is None or profile.servers[variant.server].host == host
    ]
    lacks = None if variants else "the profile has no variant of a server there: [variants.NAME]"
    order: list[str | None] = [None, *variants]
    # There and back again (A B B A): a machine that grows slower is slower for all alike.
    turns = [one for n in range(book.rounds) for one in (order if n % 2 == 0 else reversed(order))]
    steps = [_as(step, variant) for variant in turns for step in book.steps]
    return Book(name=name, about=about, steps=tuple(steps), lacks=lacks)


def _as(step: RunbookStep, variant: str | None) -> RunbookStep:
    """A step for one variant; None: for the server as it is."""
    starts = step.do in ("check", "launch", "restart") and step.variant is None
    title = f"{title_of(step)} — {variant or 'as it is'}"
    return msgspec.structs.replace(step, title=title, variant=variant if starts else step.variant)


def find(profile: Profile, name: str, host: str | None = None) -> Book:
    """A runbook by its name. Raises ``NoBook`` with the nearest right word, or with why it cannot be run."""
    known = books(profile, host)
    if name not in known:
        hint = nearest(name, known).removeprefix("; ") or ", ".join(known)
        raise NoBook(f"there is no runbook {name}", hint)
    if known[name].lacks is not None:
        raise NoBook(f"{name} cannot be run: {known[name].lacks}")
    return known[name]


def kind_of(step: RunbookStep) -> str:
    """``do``, ``wait``, ``check`` …"""
    return next(iter(kinds_of(step)))


def changes(step: RunbookStep) -> bool:
    """It changes the host: never under ``--watch``."""
    kind = kind_of(step)
    return kind in ("patch", "run", "bench") or (kind == "do" and step.do != "check")


def title_of(step: RunbookStep) -> str:
    """What it is called, else what it does."""
    if step.title is not None:
        return step.title
    kind = kind_of(step)
    if step.do is not None:
        variant = f" as {step.variant}" if step.variant else ""
        return f"{_OPERATIONS[step.do]}{variant}"
    if step.patch is not None:
        return f"{', '.join(step.patch.set)} in {step.patch.file}"
    if step.run is not None:
        return f"run {shlex.join(step.run)}"
    words = {"wait": step.wait, "check": step.check, "notify": step.notify, "manual": step.manual}
    lead = {"wait": "until ", "check": "", "notify": "say ", "manual": ""}
    text = words.get(kind) or f"benchmark {step.bench}"
    within = f", within {step.within}" if step.within else ""
    return f"{lead.get(kind, '')}{text}{within}"


def seconds(within: str) -> float:
    """``90s``, ``5m``, ``2h`` as seconds."""
    return float(within[:-1].strip()) * {"s": 1.0, "m": 60.0, "h": 3600.0}[within[-1]]
