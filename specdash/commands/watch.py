"""``specdash watch TARGET…``: ``connect --watch``."""

from __future__ import annotations

import sys
from typing import Any

import click

from specdash.commands import connect


@click.command(
    short_help="The same without any key that changes something.",
    params=[param for param in connect.command.params if param.name != "watch"],
)
def command(targets: tuple[str, ...], **given: Any) -> None:
    """Watch the servers on one or more hosts; nothing can be changed.

    The same as connect --watch: the agent is started without any verb that acts.

    \b
    Examples:
      specdash watch gpubox
      specdash watch gpubox dgx2 --plain
    """
    sys.exit(connect.run(targets, {**given, "watch": True}))
