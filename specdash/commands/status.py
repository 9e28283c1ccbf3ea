"""``specdash status TARGET``: one look at a host."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from specdash import wording
from specdash.commands.acting import looking_options
from specdash.commands.targets import ask_on_terminal, options_from

if TYPE_CHECKING:
    from specdash.monitor.state import HostState

_EXIT_TROUBLE = 1
_EXIT_NO_CONNECTION = 3


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
    from specdash.monitor.status import encode, status_document, troubled
    from specdash.profile.loading import load
    from specdash.reports.look import describe
    from specdash.session.live import open_source

    profile = load(given["profile"])
    named = profile.host_of(target)
    if named is not None:
        given["watch"] = given["watch"] or named[1].watch
    others = () if named else tuple(profile.hosts)
    options = options_from(given, ask_on_terminal(), others=others)
    source = open_source(named[1].target if named else target, options)
    refused = asyncio.run(_look(source))
    state = _only(source.state, given["server"]) if refused is None else source.state
    if refused is not None:
        click.echo(f"specdash: {wording.named(source.target, refused)}", err=True)
        sys.exit(_EXIT_NO_CONNECTION)
    if given["json"]:
        click.echo(encode(status_document(state)))
    else:
        click.echo("\n".join(describe(state)))
    sys.exit(_EXIT_TROUBLE if troubled(state) else 0)


def _only(state: HostState, wanted: str | None) -> HostState:
    """The picture with the server that is meant alone. Raises ``SpecdashError`` where there is none."""
    if wanted is None:
        return state
    import msgspec

    from specdash.operations.wishes import choose

    server = choose(state.servers, wanted)
    about = f"server:{server.key}/"
    alerts = tuple(one for one in state.alerts if one.key.startswith((about, "gpu")))
    return msgspec.structs.replace(state, servers=(server,), alerts=alerts)


async def _look(source: Any) -> str | None:
    """Follow the host until enough was seen. Returns why there is no connection, or None."""
    from specdash.session.glance import Glance

    changed = asyncio.Event()
    unsubscribe = source.subscribe(changed.set)
    running = asyncio.create_task(source.run())
    glance, clock = Glance(), asyncio.get_running_loop().time
    try:
        while True:
            outcome = glance.judge(source.state, clock())
            if outcome.done:
                return outcome.refused
            await changed.wait()
            changed.clear()
    finally:
        unsubscribe()
        await source.stop()
        await running
