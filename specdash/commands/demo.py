"""``specdash demo``: the dashboard on a simulated host."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from specdash.commands.numbers import Number
from specdash.commands.screen import Stage, screen_options
from specdash.sim.scenarios import SCENARIOS

TEACHES = {
    "zombie-live": "this start will hang, and soon you are told why",
    "zombie": "a start that hung eight hours ago",
}
"""What there is to see, where the scenario's own words need another's."""
_TABLE = "\n".join(f"  {name:<15} {scenario.about}" for name, scenario in SCENARIOS.items())


@click.command(short_help="The dashboard on a simulated host.", epilog="\b\nScenarios:\n" + _TABLE)
@click.option("--scenario", type=click.Choice(list(SCENARIOS)), default="zombie-live", show_default=True)
@click.option(
    "--speed",
    type=Number(min=0, min_open=True, max=2000),
    default=30.0,
    show_default=True,
    help="How fast the host's clock turns until a server serves; it then turns at 1.",
)
@click.option("--plain", is_flag=True, help="Plain lines, no screen.")
@screen_options
def command(**given: Any) -> None:
    """Try the dashboard: a real sshd on 127.0.0.1, real processes, eight made-up GPUs.

    By default a start hangs while you watch; within a minute you are told, with the rank that is to blame,
    and K shows how it would be ended. Everything that is started ends with this command (Linux only).

    \b
    Examples:
      specdash demo
      specdash demo --scenario healthy --speed 60
    """
    if not sys.platform.startswith("linux"):
        raise click.ClickException("the simulated host needs Linux: it is made of real processes in /proc")
    try:
        sys.exit(asyncio.run(_demo(**given)))
    except BrokenPipeError:
        raise  # nobody reads any more (``| head``): no trouble of the host
    except OSError as error:
        raise click.ClickException(f"the simulated host did not start: {error}") from error
    except KeyboardInterrupt:
        sys.exit(0)


def clock_words(speed: float) -> str:
    """That its time is not ours: an age that jumps would look like a fault."""
    return "" if speed == 1 else f" (clock × {speed:g})"


async def _demo(
    scenario: str, speed: float, plain: bool, theme: str | None, ascii_only: bool, quiet: bool
) -> int:
    from specdash.session.live import SessionOptions, open_source
    from specdash.sim.simulate import simulate

    hint = f"a made-up host{clock_words(speed)}: {TEACHES.get(scenario) or SCENARIOS[scenario].about}"
    stage = Stage(plain=plain, theme=theme, ascii_only=ascii_only, quiet=quiet, hint=hint, ends=True)
    click.echo("starting a simulated host …", err=True)
    async with simulate(scenario, speed=speed) as host:
        options = SessionOptions(ssh_config=host.ssh_config, prompter=stage.prompter)
        return await stage.play([open_source(host.target, options)])
