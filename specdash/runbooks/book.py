"""The runbooks that can be run: those of the profile, and those that come with specdash."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec

from specdash.errors import SpecdashError
from specdash.profile import Profile, RunbookStep
from specdash.profile import parse as parse_profile
from specdash.profile_runbooks import kinds_of
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

    @property
    def acts(self) -> bool:
        """Some step changes the host."""
        return any(map(changes, self.steps))


class NoBook(SpecdashError):
    """There is no runbook of that name, or it cannot be run."""

    exit_code = 2


def books(profile: Profile) -> dict[str, Book]:
    """All of them by name, the profile's own first; one of its own takes the place of one of ours."""
    ours = parse_profile((files("specdash.runbooks") / SHIPPED).read_text(), SHIPPED).runbooks
    found = {
        name: Book(name=name, about=book.about or "", steps=book.steps)
        for name, book in profile.runbooks.items()
    }
    for name, book in ours.items():
        found.setdefault(name, Book(name=name, about=book.about or "", steps=book.steps, ours=True))
    return found


def find(profile: Profile, name: str) -> Book:
    """A runbook by its name. Raises ``NoBook`` with the nearest right word, or with why it cannot be run."""
    known = books(profile)
    if name not in known:
        hint = nearest(name, known).removeprefix("; ") or ", ".join(known)
        raise NoBook(f"there is no runbook {name}", hint)
    why = missing(known[name])
    if why is not None:
        raise NoBook(f"{name} cannot be run: {why}")
    return known[name]


def missing(book: Book) -> str | None:
    """What this specdash does not have that the runbook needs; None: nothing."""
    number = next((n for n, step in enumerate(book.steps, 1) if step.bench is not None), None)
    return f"step {number} is a benchmark, which runbooks cannot run yet" if number is not None else None


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
