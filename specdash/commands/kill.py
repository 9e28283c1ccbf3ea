"""``specdash kill TARGET``: stop a server by its engine's ladder, and verify that its memory is back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import Scene, acting_options
from specdash.commands.carrying import run

if TYPE_CHECKING:
    from specdash.operations.plan import Plan


@click.command(short_help="Stop a server, whatever it takes, and verify its GPUs.")
@click.argument("target")
@acting_options
def command(target: str, **given: Any) -> None:
    """Stop the server on TARGET: its manager's own stop, then SIGTERM with a grace, then SIGKILL.

    Every signal goes to a process pinned by boot, pid and start time. Done means that its processes are gone
    and that its GPUs are clean. How it was started is remembered for `launch`.

    \b
    Examples:
      specdash kill root@gpubox --dry-run
      specdash kill gpubox --server sglang:30000 --yes
    """
    run(target, given, "kill", _prepare)


async def _prepare(here: Scene) -> Plan:
    from specdash.operations import stop
    from specdash.operations.acts import Hands
    from specdash.operations.found import Memory
    from specdash.operations.sight import look
    from specdash.operations.sightings import Sightings

    server = here.server()
    plan = await stop.prepare(here.session, server, rules=here.rules)
    if not here.given["dry_run"]:
        Sightings(here.session, Memory()).keep(await look(Hands(here.session), server))
    return plan
