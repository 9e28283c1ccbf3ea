"""``specdash report [ID]``: what was done, when, with what evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from specdash.commands.folding import tell
from specdash.commands.keeping import history, write
from specdash.errors import SpecdashError

if TYPE_CHECKING:
    from specdash.bench.record import Measured
    from specdash.history.todo import Todo


@click.command(short_help="What was done, when, with what evidence: Markdown, or one HTML page.")
@click.argument("wanted", metavar="[ID|FILE]", required=False)
@click.option("--html", is_flag=True, help="One page with charts; nothing in it is loaded from elsewhere.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write this file.")
def command(wanted: str | None, html: bool, output: Path | None) -> None:
    """Report on ID: a run of a runbook, an operation, the number of a benchmark; or on a recording FILE.

    Without ID on what was done last to a host; where nothing was, on the newest benchmark. The beginning
    of an id is enough. Secrets that are known by their name or their look are redacted; host names, paths
    and models stay as they were.

    \b
    Examples:
      specdash report
      specdash report runbook-3f2a --html --output night.html
      specdash report night.specdash.gz --html > night.html
    """
    from specdash.history.recording import found
    from specdash.operations.journal import Journal
    from specdash.reports.gather import gather
    from specdash.runbooks.runs import Runs

    report = gather(wanted and str(found(wanted)), Journal(), Runs(), _measured(), _todos)
    if html:
        from specdash.reports.page import page

        text = page(report)
    else:
        from specdash.reports.markdown import markdown

        text = markdown(report)
    if output is None:
        click.echo(text, nl=False)
        return
    write(output, text, private=True)
    tell(f"{output}: {report.title}, {report.outcome}", err=True)


def _todos(target: str) -> tuple[Todo, ...]:
    """The operator's own entries; none where there is no history."""
    from specdash.history.store import HistoryError, Store
    from specdash.session.lessons import place

    if not place().exists():
        return ()
    try:
        store = Store(place())
        try:
            return tuple(todo for name in _names(target) for todo in store.todos(name))
        finally:
            store.close()
    except HistoryError:
        return ()  # the benchmarks have said it


def _names(target: str) -> list[str]:
    """A host as it may have been named: by its target, and by the profile."""
    from specdash.profile.loading import load

    try:
        hosts = load().hosts
    except SpecdashError:
        return [target]
    return list(dict.fromkeys([target, *(name for name, host in hosts.items() if host.target == target)]))


def _measured() -> tuple[Measured, ...]:
    """The benchmarks that were kept; none where there is no history, which is said."""
    from specdash.history.store import HistoryError
    from specdash.session.lessons import place

    if not place().exists():
        return ()
    try:
        with history() as kept:
            return kept.all()
    except HistoryError as error:
        tell(f"specdash: no benchmarks: {error}", err=True)
        return ()
