"""``specdash status TARGET``: one look at a host."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import EXIT_FAILED, Scene, looking_options, scene
from specdash.commands.folding import tell

if TYPE_CHECKING:
    from specdash.monitor.state import HostState
    from specdash.operations.which import Wanted


@click.command(short_help="One look at a host: GPUs, servers, phases, readiness.")
@click.argument("target")
@looking_options
def command(target: str, **given: Any) -> None:
    """One look at TARGET: what runs there, how far it is, whether it is alive.

    Two samples are taken, two seconds apart. TARGET may be a host of the profile. Exit code 1: something
    needs a person.

    \b
    Examples:
      specdash status root@gpubox
      specdash status gpubox --json | jq '.servers[].state'
      specdash status local
    """
    sys.exit(asyncio.run(_status(target, given)))


async def _status(target: str, given: dict[str, Any]) -> int:
    from specdash.monitor.status import encode, status_document, troubled
    from specdash.reports.look import describe

    async with scene(target, given) as here:
        state = here.state if here.wanted is None else only(here.state, here.wanted)
        logs = _logs(here, state)
    if given["json"]:
        click.echo(encode(status_document(state)))
    else:
        tell("\n".join(describe(state, logs)))
    return EXIT_FAILED if troubled(state) else 0


def _logs(here: Scene, state: HostState) -> dict[str, str]:
    """Where the profile says that the servers write, by the server's key."""
    from specdash.operations.which import of_profile

    names = {server.key: of_profile(here.profile, here.host_name, server) for server in state.servers}
    logs = {key: here.profile.servers[name].log for key, name in names.items() if name is not None}
    return {key: log for key, log in logs.items() if log is not None}


def only(state: HostState, wanted: Wanted) -> HostState:
    """The picture with the server that is meant alone. Raises ``SpecdashError`` where there is none."""
    import msgspec

    from specdash.operations.which import choose

    server = choose(state.servers, wanted)
    about = f"server:{server.key}/"
    alerts = tuple(one for one in state.alerts if one.key.startswith((about, "gpu")))
    return msgspec.structs.replace(state, servers=(server,), alerts=alerts)
