"""What the commands about kept runs share: the history, opened and let go of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.history.runs import Runs


@contextlib.contextmanager
def history() -> Iterator[Runs]:
    """The runs that were kept. Raises ``HistoryError``."""
    from specdash.history.runs import Runs
    from specdash.lessons import place

    runs = Runs(place())
    try:
        yield runs
    finally:
        runs.close()


def tell(lines: Iterator[str]) -> None:
    """On stdout, cleaned: a name or a host's word is no escape code."""
    for line in lines:
        click.echo(clean_line(line))


def document(value: object) -> None:
    """One JSON document on stdout, with its schema number."""
    import msgspec

    whole = {"schema": 1, **msgspec.to_builtins(value)}
    click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode())
