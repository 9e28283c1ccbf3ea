"""A dashboard over a hand-made picture, as a program of its own: for tests on a real terminal.

``python -m tests.tui.stage PICTURE [crash] [busy]``
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from specdash.commands.screen import Stage
from specdash.tui.widgets.gpus import GpuPane
from tests.tui import fakes, states


def crash(self: GpuPane, width: int) -> list[object]:
    """A bug in a pane."""
    raise KeyError("a bug of ours [/b]")


class BusySource(fakes.FakeSource):
    """A host that never stops changing."""

    async def run(self) -> None:
        while not self.stopped:
            await asyncio.sleep(0.02)
            self.set(msgspec.structs.replace(self.state, now=self.state.now + 1))


async def show(name: str) -> int:
    """Show it until the operator leaves."""
    source = fakes.source(getattr(states, name)())
    if "busy" in sys.argv:
        source = BusySource(state=source.state, logs=source.logs)
    return await Stage(plain=False, theme=None, ascii_only=False).play([source])


def main() -> int:
    """Show a picture; returns the exit code."""
    if "crash" in sys.argv:
        GpuPane.draw = crash  # type: ignore[assignment,method-assign]
    return asyncio.run(show(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
