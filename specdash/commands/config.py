"""``specdash config check|path|schema``: the profile."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specdash.commands.folding import tell
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line
from specdash.wording import unnamed

if TYPE_CHECKING:
    from specdash.profile.document import Mistake, Profile

_EXIT_MISTAKES = 1


@click.group(short_help="The profile: check it, find it, its schema.")
def command() -> None:
    """The profile, specdash.toml: hosts, servers, variants, benchmarks, runbooks, who is told.

    specdash init TARGET writes a first one; specdash help profile explains every key.

    \b
    Examples:
      specdash config check
      specdash config schema > specdash.schema.json
    """


@command.command(short_help="Every mistake of a profile, with its line.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check(file: Path | None, as_json: bool) -> None:
    """Check a profile: every mistake with its line and the nearest right word. Exit code 1: there are.

    \b
    Examples:
      specdash config check
      specdash config check night.toml --json
    """
    from specdash.profile.loading import find

    path = find(file)
    if path is None:
        raise SpecdashError(
            "there is no profile", "specdash init TARGET writes one; specdash config path says where"
        )
    profile, mistakes = _examined(path)
    if as_json:
        rows = [{"line": m.line, "key": m.key, "says": m.says} for m in mistakes]
        click.echo(json.dumps({"schema": 1, "file": str(path), "mistakes": rows, "ok": not rows}, indent=1))
    elif mistakes or profile is None:
        tell("\n".join(clean_line(mistake.text(path)) for mistake in mistakes))
    else:
        tell(f"{path}: fine; {_counted(profile)}")
    sys.exit(_EXIT_MISTAKES if mistakes else 0)


def _examined(path: Path) -> tuple[Profile | None, Sequence[Mistake]]:
    from specdash.commands.confignames import word_mistakes
    from specdash.profile.check import read
    from specdash.profile.loading import ProfileError, text_of

    try:
        text = text_of(path)
    except ProfileError as error:
        return None, error.mistakes
    found, mistakes = read(text)
    if found is None:
        return None, mistakes
    words = (one for one in word_mistakes(found.profile, text) if found.is_meant(one.key))
    return found.profile, sorted([*mistakes, *words], key=lambda mistake: mistake.line or 0)


def _counted(profile: Profile) -> str:
    always = ("hosts", "servers", "variants")
    words = {"benchmarks": "benchmark", "runbooks": "runbook", "notify": "notify rule"}
    told = []
    for group in (*always, *words):
        number = len(getattr(profile, group))
        if number or group in always:
            told.append(f"{number} {words.get(group, group[:-1])}{'' if number == 1 else 's'}")
    return ", ".join(told)


@command.command(short_help="Where a profile is looked for, and which one counts.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def path(file: Path | None) -> None:
    """Where a profile is looked for, in this order; the one that counts is marked.

    \b
    Examples:
      specdash config path
    """
    from specdash.profile.loading import is_there, places, shown_path

    counts: Path | None = None
    for place in places(file):
        try:
            there, note = is_there(place), ""
        except SpecdashError as error:
            there, note = True, f"  ({unnamed(str(place), error.message)})"
        mark = "→" if there and counts is None else " "
        counts = place if there and counts is None else counts
        click.echo(f"{mark} {shown_path(place)}{note if there else '  (not there)'}")


@command.command(short_help="JSON Schema, for an editor.")
def schema() -> None:
    """The profile's JSON Schema, for an editor that completes and checks.

    Editors that know TOML (taplo, Even Better TOML) take it from the first line of the profile:
    #:schema ./specdash.schema.json

    \b
    Examples:
      specdash config schema > specdash.schema.json
    """
    from specdash.profile.loading import schema as profile_schema

    click.echo(json.dumps(profile_schema(), indent=1))
