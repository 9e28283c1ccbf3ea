"""``specdash doctor TARGET``: what can be seen and done there, and why not the rest."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from specdash.commands.acting import EXIT_FAILED, looking_options, scene
from specdash.commands.folding import tell


@click.command(short_help="What can be seen and done on a host, and why not the rest.")
@click.argument("target")
@looking_options
def command(target: str, **given: Any) -> None:
    """Say what can be seen and done on TARGET: link, Python, rights, GPUs, servers, logs, acting.

    Changes nothing. Exit code 1: something important cannot be seen.

    \b
    Examples:
      specdash doctor root@gpubox
      specdash doctor local --json
    """
    sys.exit(asyncio.run(_doctor(target, given)))


async def _doctor(target: str, given: dict[str, Any]) -> int:
    from specdash.operations.checks import lines_document, passes, told
    from specdash.operations.doctor import examine

    async with scene(target, given) as here:
        lines = await examine(here.session, watch=bool(given["watch"]))
    if given["json"]:
        click.echo(lines_document(lines))
    else:
        tell("\n".join(map(told, lines)))
    return 0 if all(passes(line, ()) for line in lines) else EXIT_FAILED
