"""``specdash demo``: the dashboard on a simulated host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.folding import tell
from specdash.commands.numbers import Number
from specdash.commands.screen import Stage, screen_options
from specdash.sim.scenarios import SCENARIOS, listed

if TYPE_CHECKING:
    from specdash.operations.offers import Operations
    from specdash.profile.document import Profile
    from specdash.session.live import Session
    from specdash.sim.simulate import Simulation

TEACHES = {
    "zombie-live": "this start will hang, and soon you are told why",
    "zombie": "a start that has hung for hours",
}
"""What there is to see, where the scenario's own words need another's."""


@click.command(short_help="The dashboard on a simulated host.", epilog="\b\nScenarios:\n" + listed())
@click.option(
    "--scenario",
    type=click.Choice(list(SCENARIOS)),
    metavar="NAME",
    default="zombie-live",
    show_default=True,
    help="What happens, see below.",
)
@click.option(
    "--speed",
    type=Number(min=0, min_open=True, max=2000),
    default=30.0,
    metavar="X",
    show_default=True,
    help="How fast the host's clock turns until a server serves; it then turns at 1.",
)
@click.option("--plain", is_flag=True, help="Plain lines, no screen.")
@screen_options
def command(**given: Any) -> None:
    """Try the dashboard: a real sshd on 127.0.0.1, real processes, eight made-up GPUs.

    By default a start hangs while you watch; within a minute you are told, with the rank that is to blame.
    The bottom line then names each next key: end it, start it again, measure it with and without its draft
    model, and compare. Six minutes in all. Everything that is started, and every made-up figure, ends with
    this command (Linux only).

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

    opening = f"a made-up host{clock_words(speed)}: {TEACHES.get(scenario) or SCENARIOS[scenario].about}"
    stage = Stage(plain=plain, theme=theme, ascii_only=ascii_only, quiet=quiet, opening=opening, ends=True)
    click.echo("starting a simulated host …", err=True)
    with own_state():
        async with simulate(scenario, speed=speed) as host:
            if not stage.screen:
                other = f"specdash kill {host.target} --ssh-config {host.ssh_config}"
                tell(opening, err=True)
                tell(f"from another terminal: {other}", err=True, command=True)
            options = SessionOptions(
                ssh_config=host.ssh_config, prompter=stage.prompter, hands=partial(_hands, profile_of(host))
            )
            return await stage.play([open_source(host.target, options)])


@contextlib.contextmanager
def own_state() -> Iterator[None]:
    """Made-up runs and plans are kept for this demo alone; what the operator saved meanwhile stays."""
    folder = Path(tempfile.mkdtemp(prefix="specdash-demo-"))
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before
        state = folder / "specdash"
        for ours in (*state.glob("history.db*"), state / "copied.txt"):
            ours.unlink(missing_ok=True)
        for ours in (path for path in state.glob("*") if path.is_dir()):
            shutil.rmtree(ours, ignore_errors=True)
        if kept := sorted(path.name for path in state.glob("*") if path.is_file()):
            tell(f"specdash: what you saved lies in {state}: {', '.join(kept)}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


WITH_DRAFT = "SGLang with the draft model"
WITHOUT_DRAFT = "SGLang without the draft model"
"""What the two ways to start the server are called: a plan says ``start`` and the name."""


def profile_of(host: Simulation) -> Profile:
    """What an operator of that host would have written: how to start it with and without the draft model.

    Both share a port, so a plain restart is of the one that runs, as it was.
    """
    from specdash.profile.document import Benchmark, Host, Profile, Server, Variant
    from specdash.sim.folder import NCCL, server_command, speculation

    scenario = SCENARIOS[host.scenario]
    whole = server_command(host.folder, host.server_port, scenario)
    plain = whole[: len(whole) - len(speculation(host.folder, scenario))]
    servers = {
        name: Server(
            host=host.target,
            engine="sglang",
            command=tuple(command),
            cwd=str(host.folder / "srv"),
            log=str(host.log),
            env=NCCL,
        )
        for name, command in ((WITH_DRAFT, whole), (WITHOUT_DRAFT, plain))
    }
    return Profile(
        hosts={host.target: Host(target=host.target)},
        servers=servers,
        variants={
            f"eagle3-{scenario.steps}": Variant(server=WITH_DRAFT),
            "baseline": Variant(server=WITHOUT_DRAFT),
        },
        benchmarks={"short": Benchmark(concurrency=(1,), requests=4, input=128, output=128, repeat=3)},
    )


def _hands(profile: Profile, session: Session) -> Operations:
    from specdash.operations.journal import Journal
    from specdash.operations.offers import Operations

    name = next(iter(profile.hosts))
    return Operations(session, Journal(), profile=profile, host_name=name, ends=session.ends)
