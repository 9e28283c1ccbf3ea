"""A dashboard over a hand-made picture, as a program of its own: for tests on a real terminal.

``python -m tests.tui.stage PICTURE [crash]``
"""

from __future__ import annotations

import asyncio
import sys

from specdash.commands.screen import Stage
from specdash.tui.widgets.gpus import GpuPane
from tests.tui import states


def crash(self: GpuPane, width: int) -> list[object]:
    """A bug in a pane."""
    raise KeyError("a bug of ours [/b]")


def main() -> int:
    """Show it until the operator leaves."""
    source = states.source(getattr(states, sys.argv[1])())
    if "crash" in sys.argv:
        GpuPane.draw = crash  # type: ignore[assignment,method-assign]
    return asyncio.run(Stage(plain=False, theme=None, ascii_only=False).play([source]))


if __name__ == "__main__":
    sys.exit(main())
