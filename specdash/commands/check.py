"""``specdash check TARGET``: the preflight, without a launch."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from specdash.commands.acting import EXIT_FAILED, Scene, looking_options, scene
from specdash.commands.folding import tell


@click.command(short_help="Preflight: would a launch work?")
@click.argument("target")
@click.option("--variant", metavar="NAME", help="A variant of the profile.")
@looking_options
def command(target: str, **given: Any) -> None:
    """Look whether a launch on TARGET would work: GPUs, ports, model, draft, disk, limits, version, flags.

    Changes nothing. Exit code 1: something is red.

    \b
    Examples:
      specdash check gpubox
      specdash check gpubox --variant steps-2 --json
    """
    sys.exit(asyncio.run(_check(target, given)))


async def _check(target: str, given: dict[str, Any]) -> int:
    from specdash.commands.wishing import wish_to_launch
    from specdash.operations import launch
    from specdash.operations.checks import lines_document, ok, passes, told

    async with scene(target, given) as here:
        running = await _running(here)
        wish = running or await launch.informed(here.session, wish_to_launch(here))
        lines = await launch.examined(here.session, wish, here.rules, lasting=running is not None)
        if running is not None:
            lines = (ok("server", f"{wish.launch.name} runs: what it holds itself is not looked at"), *lines)
        elif wish.source:
            lines = (ok("server", wish.source), *lines)
    if given["json"]:
        click.echo(lines_document(lines))
    else:
        tell("\n".join(map(told, lines)))
    return 0 if all(passes(line, ()) for line in lines) else EXIT_FAILED


async def _running(here: Scene) -> Any:
    """Without a profile: how the server that runs would be started again."""
    from specdash.commands.wishing import wish_for
    from specdash.operations.acts import Hands
    from specdash.operations.sight import look
    from specdash.operations.which import NoServer

    if here.given.get("variant") or (here.host_name and here.profile.servers_of(here.host_name)):
        return None
    try:
        server = here.server()
    except NoServer:
        return None
    return wish_for(here, await look(Hands(here.session), server))
