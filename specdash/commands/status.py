"""``specdash status TARGET``: one look at a host."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from specdash.commands.targets import ask_on_terminal, options_from, target_options

_EXIT_TROUBLE = 1
_EXIT_NO_CONNECTION = 3


@click.command(short_help="One look at a host: GPUs, servers, phases, readiness.")
@click.argument("target")
@target_options
def command(target: str, **given: Any) -> None:
    """One look at TARGET: what runs there, how far it is, whether it is alive.

    Two samples are taken, two seconds apart. Exit code 1: something needs a person.

    \b
    Examples:
      specdash status root@gpubox
      specdash status gpubox --json | jq '.servers[].state'
      specdash status local
    """
    from specdash.look import describe
    from specdash.monitor.status import encode, status_document, troubled
    from specdash.session import open_source

    options = options_from(given, prompter=ask_on_terminal())
    source = open_source(target, options)
    refused = asyncio.run(_look(source))
    state = source.state
    if refused is not None:
        click.echo(f"specdash: {refused}", err=True)
        sys.exit(_EXIT_NO_CONNECTION)
    if given["json"]:
        click.echo(encode(status_document(state)))
    else:
        click.echo("\n".join(describe(state)))
    sys.exit(_EXIT_TROUBLE if troubled(state) else 0)


async def _look(source: Any) -> str | None:
    """Follow the host until enough was seen. Returns why there is no connection, or None."""
    from specdash.glance import Glance

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
