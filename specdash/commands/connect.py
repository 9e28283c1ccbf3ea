"""``specdash connect TARGET…``: the dashboard."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from specdash.commands.screen import Stage, screen_options
from specdash.commands.targets import options_from, target_options


@click.command(short_help="The dashboard of one or more hosts.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET…")
@target_options
@click.option("--server", metavar="NAME|PID", help="Look at this server first.")
@click.option("--probe", is_flag=True, help="Allow one token to be asked for, even with --watch.")
@click.option(
    "--interval",
    type=click.FloatRange(0.2, 60),
    default=1.0,
    show_default=True,
    help="Seconds between samples.",
)
@screen_options
def command(targets: tuple[str, ...], **given: Any) -> None:
    """Watch the servers on one or more hosts until you leave. Leaving never touches a server.

    Without a terminal, with TERM=dumb or with --plain: one line for each change.

    \b
    Examples:
      specdash connect root@gpubox
      specdash connect gpubox dgx2 --watch
      specdash connect local --log /var/log/sglang.log
    """
    sys.exit(run(targets, given))


def run(targets: tuple[str, ...], given: dict[str, Any]) -> int:
    """Open the hosts and show them; returns the exit code."""
    if given["json"]:
        raise click.UsageError("a dashboard is no document: `specdash status --json` prints one")
    from specdash.session import open_source

    stage = Stage(
        plain=given["plain"],
        theme=given["theme"],
        ascii_only=given["ascii_only"],
        server=given["server"],
    )
    options = options_from(given, stage.prompter, probe=given["probe"], interval=given["interval"])
    sources = [open_source(target, options) for target in targets]
    try:
        return asyncio.run(stage.play(sources))
    except KeyboardInterrupt:
        return 0
