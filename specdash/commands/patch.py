"""``specdash patch TARGET FILE KEY=VALUE…``: change values in a file on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import Scene, acting_options
from specdash.commands.carrying import run

if TYPE_CHECKING:
    from specdash.operations.plan import Plan


@click.command(short_help="Change values in a config file on the host; undo takes it back.")
@click.argument("target")
@click.argument("file")
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE…")
@acting_options
def command(target: str, file: str, changes: tuple[str, ...], **given: Any) -> None:
    """Change values in FILE on TARGET: JSON, YAML, TOML, .env or shell, by its name.

    The diff is shown first. Only the value's own bytes change; the file is written only if it still is what
    was shown, whole or not at all, with a backup outside its folder.

    \b
    Examples:
      specdash patch gpubox /draft/config.json max_position_embeddings=262144
      specdash patch gpubox /draft/config.json rope_scaling.factor=2.0 --dry-run
    """
    pairs = []
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{change} is no KEY=VALUE")
        pairs.append((key, value))
    if not file.startswith("/"):
        raise click.UsageError(f"{file}: give the whole path on the host")
    given["file"], given["pairs"] = file, pairs
    run(target, given, "patch", _prepare)


async def _prepare(here: Scene) -> Plan:
    from specdash.operations import patch
    from specdash.operations.work import Edit

    edits = [Edit(key=key, value=value) for key, value in here.given["pairs"]]
    return await patch.prepare(here.session, here.given["file"], edits, rules=here.rules)
