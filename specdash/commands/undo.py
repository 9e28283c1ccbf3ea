"""``specdash undo TARGET``: take the newest patch of a host back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import Scene, acting_options
from specdash.commands.carrying import run

if TYPE_CHECKING:
    from specdash.operations.plan import Plan


@click.command(short_help="Take the newest patch back.")
@click.argument("target")
@acting_options
def command(target: str, **given: Any) -> None:
    """Put the file that the newest `patch` of TARGET changed back, if nobody has changed it since.

    \b
    Examples:
      specdash undo gpubox --dry-run
    """
    run(target, given, "undo", _prepare)


async def _prepare(here: Scene) -> Plan:
    from specdash.operations import patch

    plan, _ = patch.undo(here.session, here.journal, rules=here.rules)
    return plan
