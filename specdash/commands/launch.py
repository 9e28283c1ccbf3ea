"""``specdash launch TARGET``: preflight, start, follow, one token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import Scene, acting_options
from specdash.commands.carrying import run

if TYPE_CHECKING:
    from specdash.operations.plan import Plan


@click.command(short_help="Start a server of the profile, or one seen there, as it was.")
@click.argument("target")
@click.option("--variant", metavar="NAME", help="A variant of the profile: more flags, variables, patches.")
@acting_options
def command(target: str, **given: Any) -> None:
    """Start a server on TARGET after a preflight, follow it until it serves, ask it for one token.

    From the profile; without one, the server that was found there is started again as it was; of several
    --server names one. Red in the preflight stops it; --force CHECK goes on all the same.

    \b
    Examples:
      specdash launch gpubox
      specdash launch gpubox --variant steps-2 --dry-run
    """
    run(target, given, "launch", _prepare)


async def _prepare(here: Scene) -> Plan:
    from specdash.commands.wishing import wish_to_launch
    from specdash.operations import launch

    return await launch.prepare(here.session, wish_to_launch(here), rules=here.rules)
