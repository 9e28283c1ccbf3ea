"""``specdash runs``: the benchmarks that were kept."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import say
from specdash.commands.folding import columns
from specdash.commands.keeping import document, history, kept_under, tell, word, write
from specdash.commands.numbers import Number
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.bench.record import Measured

DAY_S = 86_400.0
EARLIEST = 2000
"""The year before which nobody measured tokens a second."""
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
_NUMBERS = click.argument("runs", nargs=-1, required=True, type=click.IntRange(1), metavar="RUN…")


class _OfHost(click.Group):
    """Nearly every other command takes its host where this one takes what to do."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As a group does. A host in its place is told where it belongs: ``UsageError``."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if not _is_host(args[0]):
                raise
            words = f"no command {args[0]}; the runs of a host: specdash runs --host {shlex.quote(args[0])}"
            raise click.UsageError(clean_line(words), ctx) from None


def _is_host(word: str) -> bool:
    """It is a host that is known here, or looks like a target."""
    from specdash.completing import hosts
    from specdash.profile.loading import load

    if any(mark in word for mark in "@:."):
        return True
    with history() as kept:
        if any(run.host == word for run in kept.all()):
            return True
    try:
        return word in hosts(load())
    except SpecdashError:
        return False


@click.group(cls=_OfHost, invoke_without_command=True, short_help="The benchmarks that were kept.")
@click.option("--host", metavar="TARGET", help="Only those of one host or URL.")
@click.option("--tag", metavar="TAG", help="Only those with this tag.")
@_JSON
@click.pass_context
def command(ctx: click.Context, host: str | None, tag: str | None, as_json: bool) -> None:
    """Every benchmark that was kept, the newest last.

    \b
    Examples:
      specdash runs
      specdash runs show 12
      specdash runs claim gpubox 94 --variant baseline
      specdash runs export --csv > runs.csv
    """
    if ctx.invoked_subcommand is not None:
        return
    with history() as kept:
        found = kept.all(host=kept_under(host) if host else None, tag=tag)
    if as_json:
        document({"runs": [_plain(run) for run in found]})
    elif not found:
        click.echo(_none(host, tag), err=True)
    else:
        tell(_list(found, columns(sys.stdout)))


def _none(host: str | None, tag: str | None) -> str:
    asked = " and ".join(f"{word} {name}" for word, name in (("of", host), ("with the tag", tag)) if name)
    return (
        f"no run {clean_line(asked)} was kept" if asked else "no run was kept yet: specdash bench makes one"
    )


def _list(found: Sequence[Measured], room: int | None) -> Iterator[str]:
    """A run a line. What does not fit ``room`` stands below: the load, where a line is too long for all."""
    from specdash.bench.words import run_line

    rows = [("run", "when", "host", "variant", "load", "tok/s", ""), *(run_line(run) for run in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    narrow = room is not None and sum(widths) + 2 * (len(widths) - 1) > room
    for *left, rate, note in rows:
        below = [left.pop()] if narrow else []
        words = [word.ljust(width) for word, width in zip(left, widths, strict=False)]
        line = "  ".join((*words, rate.rjust(widths[5])))
        if room is None or (not narrow and len(line) + 2 + len(note) <= room):
            yield f"{line}  {note}".rstrip()
            continue
        yield line
        indent = " " * (widths[0] + 2)
        told = "  ".join(filter(None, (*below, note)))
        yield from wrap(told, room, initial_indent=indent, subsequent_indent=indent)


@command.command(short_help="Everything that is known of one run.")
@click.argument("run", type=click.IntRange(1))
@click.option("--requests", is_flag=True, help="Its raw records as JSON lines.")
@_JSON
def show(run: int, requests: bool, as_json: bool) -> None:
    """Figures, load, host and fingerprint of RUN.

    \b
    Examples:
      specdash runs show 12
      specdash runs show 12 --requests
    """
    with history() as kept:
        found = kept.get(run)
        records = kept.records(run) if requests else ()
    if requests:
        from specdash.bench.events import encode

        for event in records:
            click.echo(encode(event).decode())
    elif as_json:
        document({"runs": [_plain(found)]})
    else:
        from specdash.bench.sheet import sheet

        tell(sheet(found))


@command.command(short_help="Forget runs, records and all.")
@_NUMBERS
@click.option("--yes", is_flag=True, help="Without asking.")
def delete(runs: tuple[int, ...], yes: bool) -> None:
    """Forget the runs RUN…; nothing brings them back.

    \b
    Examples:
      specdash runs delete 12 13
    """
    from specdash.commands.carrying import agree
    from specdash.monitor.spans import count

    if not yes:
        with history() as kept:
            known = [run for run in kept.all() if run.id in runs]
        say(f"forget {count(len(runs), 'run')}, records and all; nothing brings them back:")
        for line in _list(known, columns(sys.stderr)) if known else ():
            say(clean_line(line))
        asyncio.run(agree("delete", yes=yes))
    with history() as kept:
        gone = kept.delete(runs)
    click.echo(f"{gone} of {len(runs)} forgotten")
    sys.exit(0 if gone == len(runs) else 1)


@command.command(short_help="Call a run something.")
@click.argument("run", type=click.IntRange(1))
@click.argument("name")
def rename(run: int, name: str) -> None:
    """Call RUN by NAME; compare finds it by that, too.

    \b
    Examples:
      specdash runs rename 12 night
    """
    with history() as kept:
        kept.rename(run, word(name))


@command.command(short_help="Put a tag on runs, or take it off.")
@click.argument("tag")
@_NUMBERS
@click.option("--off", is_flag=True, help="Take it off.")
def tag(tag: str, runs: tuple[int, ...], off: bool) -> None:
    """Put TAG on the runs RUN…; compare and runs --tag find them by it.

    \b
    Examples:
      specdash runs tag ring 12 13
      specdash runs tag ring 13 --off
    """
    with history() as kept:
        for number in runs:
            kept.tag(number, [word(tag)], off=off)


@command.command(short_help="Forget the raw records of old runs; their figures stay.")
@click.option("--older-than", type=Number(0, 36_500), default=90, metavar="DAYS", show_default=True)
def purge(older_than: float) -> None:
    """Make the history small again.

    \b
    Examples:
      specdash runs purge --older-than 30
    """
    with history() as kept:
        gone = kept.purge(time.time() - older_than * DAY_S)
    click.echo(f"raw records of {gone} run{'' if gone == 1 else 's'} forgotten; every figure stays")


@command.command(short_help="Note a number from elsewhere, to hold runs against it.")
@click.argument("host", metavar="TARGET|URL")
@click.argument("tok_s", type=Number(0.001, 1e9), metavar="TOKS")
@click.option("--variant", default="baseline", show_default=True, help="What was measured.")
@click.option("--like", type=click.IntRange(1), metavar="RUN", help="Under the same load as this run.")
@click.option("--on", type=click.DateTime(("%Y-%m-%d",)), help="The day it was measured.")
def claim(host: str, tok_s: float, variant: str, like: int | None, on: Any) -> None:
    """Keep TOKS tokens a second as what somebody says of TARGET: compare tells whether it is reproduced.

    \b
    Examples:
      specdash runs claim gpubox 94 --variant baseline
      specdash runs claim gpubox 94 --like 12 --on 2026-11-02
    """
    from specdash.bench.claims import claim as claimed

    name = kept_under(clean_line(host).strip())
    if not name:
        raise click.BadParameter("a host or a URL is needed", param_hint="TARGET")
    if on is not None and (on.year < EARLIEST or on.timestamp() > time.time()):
        raise click.BadParameter(f"{on:%Y-%m-%d} is no day on which it can have been", param_hint="--on")
    at = on.timestamp() if on is not None else time.time()
    with history() as kept:
        load = kept.get(like).workload if like is not None else None
        run = kept.add(claimed(name, tok_s, at=at, variant=word(variant), workload=load))
    click.echo(f"kept as run {run.id}")


@command.command(short_help="Runs as CSV or JSON lines, on stdout or into a file.")
@click.argument("runs", nargs=-1, type=click.IntRange(1), metavar="[RUN…]")
@click.option("--csv", "as_csv", is_flag=True, help="A table of figures; else one JSON document a line.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write this file.")
def export(runs: tuple[int, ...], as_csv: bool, output: Path | None) -> None:
    """All runs, or those numbered RUN…

    \b
    Examples:
      specdash runs export --csv --output runs.csv
      specdash runs export 12 13
    """
    from specdash.bench.export import csv_text, json_lines

    with history() as kept:
        found = tuple(kept.get(number) for number in runs) if runs else kept.all()
    text = csv_text(found) if as_csv else json_lines(found)
    if output is None:
        click.echo(text, nl=False)
    else:
        write(output, text)


def _plain(run: Measured) -> dict[str, Any]:
    from specdash.bench.export import plain

    return plain(run)
