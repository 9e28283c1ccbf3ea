"""Three simulated hosts, one dead port and one that never answers, in one view: nobody waits for another."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from specdash.commands.deferred import DeferredSource
from specdash.session.live import SessionOptions, open_source
from specdash.sim.ports import free_port
from specdash.sim.simulate import Simulation, simulate
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from tests.tui.reading import screen_lines, screen_text, settle, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

NAMES = ("dead", "mute", "gpubox", "hung", "left")


@pytest.fixture
def mute() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield listener.getsockname()[1]


def config_of(folder: Path, sims: list[Simulation], mute: int) -> Path:
    """One ssh configuration for all of them."""
    text = f"Host dead\n HostName 127.0.0.1\n Port {free_port()}\n"
    text += f"Host mute\n HostName 127.0.0.1\n Port {mute}\n ConnectTimeout 600\n"
    for name, sim in zip(NAMES[2:], sims, strict=True):
        text += re.sub(r"(?m)^Host .*", f"Host {name}", sim.ssh_config.read_text()) + "\n"
    path = folder / "config"
    path.write_text(text)
    return path


async def test_dead_and_mute_hosts_delay_no_other_and_each_has_its_cell(tmp_path: Path, mute: int) -> None:
    async with AsyncExitStack() as stack:
        sims = await asyncio.gather(
            *(
                stack.enter_async_context(simulate(kind, speed=200))
                for kind in ("healthy", "zombie", "orphan")
            )
        )
        options = SessionOptions(ssh_config=config_of(tmp_path, list(sims), mute))
        sources = [DeferredSource(name, lambda name=name: open_source(name, options)) for name in NAMES]  # type: ignore[misc]
        known, theme = themes.resolve(None)
        app = SpecdashApp(sources, themes=known, theme=theme)
        began = time.monotonic()
        async with app.run_test(size=(200, 50)) as pilot:
            while any(source.state.host is None for source in sources[2:]):
                assert time.monotonic() - began < 120, screen_text(app)
                await pilot.pause(0.05)
            assert sources[1].state.link.state == "connecting", "the mute one is still waited for"
            await until(pilot, "hung ✖ STALLED")
            await until(pilot, "left ✖ CRASHED")
            text = await until(pilot, "dead not reached")
            assert "mute connecting" in text
            assert "▸○ dead" in text, "the one named first is looked at"
            await pilot.press("0", "right", "right")
            board = await settle(pilot)
            assert board.state.target == "gpubox"
            assert "▸● gpubox" in screen_text(app)
            await pilot.press("right", "enter")
            await settle(pilot)
            assert "hung (gpubox) ▸ sglang" in screen_lines(app)[0]
        for source in sources:
            await source.stop()
