"""``specdash compare``: is it really faster?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.keeping import document, history, kept_under, tell
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.bench.record import Measured
    from specdash.bench.table import Table

_EXIT_SLOWER = 1


@click.command(short_help="Kept benchmarks side by side, with a verdict that noise does not make.")
@click.argument("runs", nargs=-1, metavar="[RUN…]")
@click.option("--baseline", metavar="RUN", help="What the others are held against: a run, a name, a variant.")
@click.option("--host", metavar="TARGET", help="Only runs of this host or URL.")
@click.option("--fail-if", type=click.Choice(("slower",)), help="Exit code 1 where a variant is slower.")
@click.option("--markdown", is_flag=True, help="For a ticket.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(
    runs: tuple[str, ...],
    baseline: str | None,
    host: str | None,
    fail_if: str | None,
    markdown: bool,
    as_json: bool,
) -> None:
    """The runs RUN… (numbers, names, variants or tags), or all of the host that was measured last.

    A row for each variant under each load: the median, its 95 % interval, the difference to the reference and
    a verdict: faster, slower, same, or not distinguishable and how many more pairs of runs would settle it.
    The reference is the variant baseline, else the oldest, or what --baseline names. Of two
    variants it says what differs between their fingerprints.

    \b
    Examples:
      specdash compare
      specdash compare baseline eagle3-3 --markdown
      specdash compare 12 13 14 15 --baseline 12 --fail-if slower
    """
    from specdash.bench.fingerprint import SIMULATED
    from specdash.bench.table import tables
    from specdash.bench.words import markdown as in_markdown
    from specdash.bench.words import text

    everything, chosen, wanted = _chosen(runs, baseline, host)
    base = (wanted.variant, wanted.host) if wanted is not None else (None, None)
    found = tables(chosen, baseline=base[0], baseline_host=base[1], history=everything)
    if as_json:
        document(_document(found, chosen))
    elif markdown:
        click.echo("\n".join(map(clean_line, in_markdown(found))))  # folded it would be no table any more
    else:
        tell(text(found))
        _tell_apart(chosen)
    if not as_json and any(SIMULATED in run.tags for run in chosen):
        words = "SIMULATED: figures of a simulated host are among these"
        click.echo(f"\n**{words}**" if markdown else words, err=not markdown)  # a ticket has stdout alone
    if fail_if == "slower" and any(table.slower for table in found):
        sys.exit(_EXIT_SLOWER)


def _chosen(
    words: Sequence[str], baseline: str | None, host: str | None
) -> tuple[tuple[Measured, ...], tuple[Measured, ...], Measured | None]:
    """All runs, those to compare, and one of those that the others are held against."""
    with history() as kept:
        everything = kept.all()
        if not everything:
            raise SpecdashError("no run was kept yet", "specdash bench makes one")
        named = {run.id: run for word in words for run in kept.find(word)}
        wanted = kept.find(baseline) if baseline is not None else ()
    chosen = {run.id: run for run in (*named.values(), *wanted)} if words else {r.id: r for r in everything}
    newest = max(everything, key=lambda run: (not run.claimed, run.at))
    where = kept_under(host) if host else (None if words else newest.host)
    found = tuple(run for run in chosen.values() if where in (None, run.host))
    if not found:
        raise SpecdashError(f"no run of {where}", "specdash runs lists what was kept")
    held = next((run for run in wanted if run in found), None)
    if wanted and held is None:
        raise SpecdashError(
            f"{baseline} is no run of {where}", "without --host those of several are compared"
        )
    return everything, found, held


def _representatives(chosen: Sequence[Measured]) -> list[Measured]:
    """The newest measured run of each variant, in the order of the first."""
    newest: dict[tuple[str, str], Measured] = {}
    for run in sorted(chosen, key=lambda run: run.at):
        if run.fingerprint:
            newest[run.host, run.variant] = run
    return list(newest.values())


def _tell_apart(chosen: Sequence[Measured]) -> None:
    from specdash.bench.words import apart

    two = _representatives(chosen)
    if len(two) == 1 and len(chosen) == 2:
        two = list(chosen)
    if len(two) == 2:
        ours, theirs = two
        names = (f"{ours.variant} (run {ours.id})", f"{theirs.variant} (run {theirs.id})")
        click.echo("")
        tell(apart(ours.depends, theirs.depends, *names))


def _document(found: Sequence[Table], chosen: Sequence[Measured]) -> dict[str, Any]:
    import msgspec

    from specdash.bench.fingerprint import differences, not_seen

    newest = _representatives(chosen)
    apart = [
        {"from": newest[0].id, "to": other.id, "fields": [one._asdict() for one in pair], "not_seen": blind}
        for other in newest[1:]
        for pair in [differences(newest[0].depends, other.depends)]
        for blind in [dict(zip(("ours", "theirs"), not_seen(newest[0].depends, other.depends), strict=True))]
        if pair or any(blind.values())
    ]
    return {"tables": msgspec.to_builtins(found), "differences": apart}
