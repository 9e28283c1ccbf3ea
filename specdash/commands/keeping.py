"""What the commands about what was kept share: the history, names, documents and files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specdash import ownfiles
from specdash.commands import folding
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.history.runs import Runs

LONGEST_NAME = 80


@contextlib.contextmanager
def history() -> Iterator[Runs]:
    """The runs that were kept; of those that cannot be read it is said. Raises ``HistoryError``."""
    from specdash.history.runs import Runs
    from specdash.session.lessons import place

    runs = Runs(place())
    try:
        yield runs
    finally:
        runs.close()
    for number in runs.unreadable:
        click.echo(f"run {number} is damaged: specdash runs delete {number} takes it away", err=True)


def kept_under(host: str) -> str:
    """What runs of a host are kept under: its target, where the profile names it. Raises ``ProfileError``."""
    from specdash.profile.loading import load

    named = None if "://" in host else load().host_of(host)
    return named[1].target if named is not None else host


def word(text: str) -> str:
    """A name as it may be kept: one line, something in it. Raises ``BadParameter``."""
    name = clean_line(" ".join(text.split()))
    if not name or len(name) > LONGEST_NAME or name.isdecimal():
        raise click.BadParameter(
            f"{text!r} is no name: up to {LONGEST_NAME} characters, and not a bare number"
        )
    return name


def tell(lines: Iterator[str]) -> None:
    """On stdout, cleaned: a name or a host's word is no escape code."""
    for line in lines:
        folding.tell(clean_line(line))


def write(path: Path, text: str, *, private: bool = False, anew: bool = False) -> None:
    """Write a file where the operator said; what could not be written whole leaves no new part behind.

    ``private``: nobody else may read it. ``anew``: it must not be there. Raises ``SpecdashError``,
    ``FileExistsError``.
    """
    there = path.exists()
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if anew else os.O_TRUNC)
    try:
        with os.fdopen(os.open(path, flags, 0o600 if private else 0o666), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise
    except OSError as error:
        if not there:
            with contextlib.suppress(OSError):
                path.unlink()
        raise SpecdashError(f"cannot write {path.name}: {ownfiles.unwritten(path, error)}") from error


def document(value: object) -> None:
    """One JSON document on stdout, with its schema number."""
    import msgspec

    whole = {"schema": 1, **msgspec.to_builtins(value)}
    click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode())
