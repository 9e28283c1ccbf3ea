"""What the commands about kept runs share: the history, opened and let go of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.history.runs import Runs

LONGEST_NAME = 80


@contextlib.contextmanager
def history() -> Iterator[Runs]:
    """The runs that were kept. Raises ``HistoryError``."""
    from specdash.history.runs import Runs
    from specdash.session.lessons import place

    runs = Runs(place())
    try:
        yield runs
    finally:
        runs.close()


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
        click.echo(clean_line(line))


def document(value: object) -> None:
    """One JSON document on stdout, with its schema number."""
    import msgspec

    whole = {"schema": 1, **msgspec.to_builtins(value)}
    click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode())
