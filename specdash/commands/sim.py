"""``specdash sim``: only the simulated host, for trying things out and for tests."""

from __future__ import annotations

import sys

import click

from specdash.commands.numbers import Number
from specdash.loading import loading
from specdash.sim.scenarios import SCENARIOS, listed


@click.command(
    short_help="Only a simulated GPU host, to try things out.", epilog="\b\nScenarios:\n" + listed()
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port of its sshd; 0 takes a free one.",
)
@click.option(
    "--scenario",
    type=click.Choice(list(SCENARIOS)),
    metavar="NAME",
    default="healthy",
    show_default=True,
    help="What happens, see below.",
)
@click.option(
    "--speed",
    type=Number(min=0, min_open=True, max=2000),
    default=1.0,
    metavar="X",
    show_default=True,
    help="How fast the host's clock turns until a server serves; it then turns at 1.",
)
@click.option("--serving-speed", type=Number(min=0, min_open=True), default=1.0, hidden=True)
@click.option("--until-stdin-closes", is_flag=True, hidden=True)
def command(port: int, scenario: str, speed: float, serving_speed: float, until_stdin_closes: bool) -> None:
    """Run a simulated GPU host: a real sshd on 127.0.0.1, real processes, eight made-up GPUs.

    The first line on stdout is a JSON document with the target and an ssh_config that leads to it.
    Everything ends with this command (Linux only).

    \b
    Examples:
      specdash sim --scenario zombie
      specdash sim --port 2222 --speed 60
    """
    if not sys.platform.startswith("linux"):
        raise click.ClickException("the simulated host needs Linux: it is made of real processes in /proc")
    with loading():
        from specdash.sim.keeper import keep
        from specdash.sim.options import Options

    sys.exit(
        keep(
            Options(
                scenario=scenario,
                speed=speed,
                serving_speed=serving_speed,
                port=port,
                until_stdin_closes=until_stdin_closes,
            )
        )
    )
