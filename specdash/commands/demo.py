"""``specdash demo``: the dashboard on a simulated host."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from specdash.commands.numbers import Number
from specdash.commands.screen import Stage, screen_options
from specdash.sim.scenarios import SCENARIOS

_TABLE = "\n".join(f"  {name:<15} {scenario.about}" for name, scenario in SCENARIOS.items())


@click.command(short_help="The dashboard on a simulated host.", epilog="\b\nScenarios:\n" + _TABLE)
@click.option("--scenario", type=click.Choice(list(SCENARIOS)), default="healthy", show_default=True)
@click.option(
    "--speed",
    type=Number(min=0, min_open=True, max=2000),
    default=20.0,
    show_default=True,
    help="How fast the host's clock turns.",
)
@click.option("--plain", is_flag=True, help="Plain lines, no screen.")
@screen_options
def command(**given: Any) -> None:
    """Try the dashboard: a real sshd on 127.0.0.1, real processes, eight made-up GPUs.

    Everything that is started ends with this command (Linux only).
    """
    if not sys.platform.startswith("linux"):
        raise click.ClickException("the simulated host needs Linux: it is made of real processes in /proc")
    try:
        sys.exit(asyncio.run(_demo(**given)))
    except OSError as error:
        raise click.ClickException(f"the simulated host did not start: {error}") from error
    except KeyboardInterrupt:
        sys.exit(0)


async def _demo(
    scenario: str, speed: float, plain: bool, theme: str | None, ascii_only: bool, quiet: bool
) -> int:
    from specdash.session import SessionOptions, open_source
    from specdash.sim.simulate import simulate

    stage = Stage(plain=plain, theme=theme, ascii_only=ascii_only, quiet=quiet)
    click.echo("starting a simulated host …", err=True)
    async with simulate(scenario, speed=speed) as host:
        options = SessionOptions(ssh_config=host.ssh_config, prompter=stage.prompter)
        return await stage.play([open_source(host.target, options)])
