"""``specdash log FILE…``: what a log says, without a connection."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specdash import ownfiles
from specdash.commands.folding import tell
from specdash.commands.numbers import Number
from specdash.wording import why

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.monitor.case import Judged
    from specdash.monitor.evidence import Evidence
    from specdash.monitor.reading import LogReading

_EXIT_TROUBLE = 1


@click.command(short_help="Milestones, verdict and diagnoses of a log file; no connection.")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--engine", metavar="E", help="The log's engine (sglang, vllm); else its first lines tell.")
@click.option("--silent-for", type=Number(0, 1e9), metavar="S", help="Seconds since the log's last byte.")
@click.option("--evidence", metavar="FILE", help="What else was seen, as JSON: HTTP, GPUs, processes.")
@click.option("--milestones", is_flag=True, help="List every milestone with its line and rank.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document; of several files a list.")
def command(
    files: tuple[str, ...],
    engine: str | None,
    silent_for: float | None,
    evidence: str | None,
    milestones: bool,
    as_json: bool,
) -> None:
    """What the log FILE says of its server: state, phases, milestones and what went wrong.

    ``-`` reads stdin. Docker's own files, ID-json.log, are read as ``docker logs`` prints them.

    A log alone has no clock: how long it has been silent must be said with --silent-for before silence is
    called a stall. Without it the file's own time is told, and a start that has long been silent by it is
    unknown. Exit code 1: something needs a person, or a file could not be read.

    \b
    Examples:
      specdash log /var/log/sglang.log
      specdash log server.log --silent-for 900 --json
      docker logs vllm 2>&1 | specdash log - --milestones
    """
    from specdash.errors import SpecdashError
    from specdash.intake.rules import default_rules
    from specdash.logs.file import waits_for_writer
    from specdash.monitor.logtext import in_words
    from specdash.sanitise import clean_line

    rules = default_rules()
    for problem in rules.problems:
        tell(clean_line(f"specdash: {problem}"), err=True)
    seen = _evidence(evidence)
    results: list[tuple[LogReading, Judged]] = []
    failed = False
    for name in files:
        if waits_for_writer(name) and sys.stderr.isatty():
            tell(clean_line(f"{name} is a pipe: what is written into it is read to its end"), err=True)
        try:
            results.append(_look(name, rules.grammars, engine, silent_for, seen))
        except SpecdashError as error:
            tell(clean_line(f"specdash: {error}"), err=True)
            failed = True
            continue
        if not as_json:
            title = [clean_line(f"== {name}")] if len(files) > 1 else []
            tell("\n".join([*title, *in_words(*results[-1], milestones=milestones)]))
    if as_json and results:
        click.echo(_encode(results, single=len(files) == 1))
    alarm = any(judged.alarm for _, judged in results)
    sys.exit(_EXIT_TROUBLE if alarm or failed else 0)


def _look(
    name: str,
    grammars: tuple[Grammar, ...],
    engine: str | None,
    silent_for: float | None,
    seen: Evidence | None,
) -> tuple[LogReading, Judged]:
    """Read one file to its end and weigh it."""
    from specdash.engines.common import default_book, default_limits
    from specdash.logs.file import pieces, silent_since
    from specdash.logs.jsonfile import unwrapped
    from specdash.monitor.logverdict import judge_log, with_file_age
    from specdash.monitor.reader import begin, finish, read

    try:
        reading = begin(grammars, engine)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--engine") from None
    for piece in unwrapped(pieces(name)):
        reading = read(reading, piece)
    reading = finish(reading)
    judged = judge_log(reading, default_limits(), default_book(), silent_for, seen)
    written_at = silent_since(name) if silent_for is None and seen is None else None
    if written_at is not None:
        judged = with_file_age(judged, default_limits(), max(0.0, time.time() - written_at))
    return reading, judged


def _evidence(name: str | None) -> Evidence | None:
    from specdash.monitor.evidence_json import EvidenceError, decode_evidence

    if name is None:
        return None
    try:
        return decode_evidence(ownfiles.data_of(Path(name)), name)
    except (EvidenceError, OSError) as error:
        reason = f"{name}: {why(error)}" if isinstance(error, OSError) else str(error)
        raise click.BadParameter(reason, param_hint="--evidence") from None


def _encode(results: list[tuple[LogReading, Judged]], *, single: bool) -> str:
    import msgspec

    from specdash.monitor.logverdict import document

    documents = [document(reading, judged) for reading, judged in results]
    return msgspec.json.encode(documents[0] if single else documents).decode()
