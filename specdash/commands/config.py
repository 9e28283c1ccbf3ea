"""``specdash config check|path|schema``: the profile."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from specdash.errors import SpecdashError

_EXIT_MISTAKES = 1


@click.group(short_help="The profile: check it, find it, its schema.")
def command() -> None:
    """The profile, specdash.toml: hosts, servers, variants, benchmarks, runbooks."""


@command.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check(file: Path | None, as_json: bool) -> None:
    """Check a profile: every mistake with its line and the nearest right word. Exit code 1: there are."""
    from specdash.profile import ProfileError, find, load

    path = find(file)
    if path is None:
        raise SpecdashError("there is no profile", "specdash config path says where it is looked for")
    try:
        profile = load(path)
    except ProfileError as error:
        rows = [{"line": m.line, "key": m.key, "says": m.says} for m in error.mistakes]
        if as_json:
            click.echo(json.dumps({"schema": 1, "file": str(path), "mistakes": rows, "ok": False}, indent=1))
        else:
            click.echo("\n".join(mistake.text(path) for mistake in error.mistakes))
        sys.exit(_EXIT_MISTAKES)
    if as_json:
        click.echo(json.dumps({"schema": 1, "file": str(path), "mistakes": [], "ok": True}, indent=1))
    else:
        counts = (
            (len(profile.hosts), "host"),
            (len(profile.servers), "server"),
            (len(profile.variants), "variant"),
        )
        told = ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts)
        click.echo(f"{path}: fine; {told}")


@command.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
def path(file: Path | None) -> None:
    """Where a profile is looked for, in this order; the one that counts is marked."""
    from specdash.profile import find, places, shown_path

    counts = find(file)
    for place in places(file):
        mark = "→" if place == counts else " "
        click.echo(f"{mark} {shown_path(place)}{'' if place.is_file() else '  (not there)'}")


@command.command()
def schema() -> None:
    """The profile's JSON Schema, for an editor that completes and checks."""
    from specdash.profile import schema as profile_schema

    click.echo(json.dumps(profile_schema(), indent=1))
