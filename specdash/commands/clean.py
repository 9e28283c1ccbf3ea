"""``specdash clean TARGET``: end what dead servers left on the GPUs, and verify that they are clean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import Scene, acting_options
from specdash.commands.carrying import run

if TYPE_CHECKING:
    from specdash.operations.plan import Plan


@click.command(short_help="Free GPU memory that a dead server left.")
@click.argument("target")
@acting_options
def command(target: str, **given: Any) -> None:
    """End what dead servers left on the GPUs of TARGET, remove their files, verify.

    Only owners of GPU memory that no living server uses are ended. Whoever merely has a device open
    (monitors, the display) is listed and left alone. --force others ends owners that may be somebody's job;
    --force foreign those of other users and containers. In a container, the profile's cleanup_via is asked,
    too.

    \b
    Examples:
      specdash clean gpubox --dry-run
      specdash clean gpubox --yes
    """
    run(target, given, "clean", _prepare, outside=True)


async def _prepare(here: Scene) -> Plan:
    from specdash.operations import clean

    return await clean.prepare(here.session, here.outside, rules=here.rules)
