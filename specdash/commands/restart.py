"""``specdash restart TARGET``: stop, verify, preflight, launch, follow, one token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import Scene, acting_options
from specdash.commands.carrying import run

if TYPE_CHECKING:
    from specdash.operations.plan import Plan


@click.command(short_help="Stop, verify, preflight, start, follow to a token.")
@click.argument("target")
@click.option("--variant", metavar="NAME", help="A variant of the profile: more flags, variables, patches.")
@acting_options
def command(target: str, **given: Any) -> None:
    """Restart the server on TARGET.

    Without a profile it is started again with the command line, environment, folder, user and log that it
    has now; what could not be read is said. Nothing is stopped for a launch whose preflight is red already.
    Where no server lives any more, the last one is launched.

    \b
    Examples:
      specdash restart gpubox --dry-run
      specdash restart gpubox --variant steps-2 --yes
    """
    run(target, given, "restart", prepare)


async def prepare(here: Scene) -> Plan:
    """The plan for the server that is meant, into ``here.given["variant"]`` where one is named."""
    from specdash.commands.wishing import wish_for, wish_to_launch
    from specdash.operations import launch
    from specdash.operations.acts import Hands
    from specdash.operations.sight import look
    from specdash.operations.which import NoServer

    try:
        server = here.server()
    except NoServer:
        return await launch.prepare(here.session, wish_to_launch(here), rules=here.rules, kind="restart")
    sight = await look(Hands(here.session), server)
    return await launch.prepare_restart(here.session, sight, wish_for(here, sight), rules=here.rules)
