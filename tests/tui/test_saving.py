"""What is saved and copied of a log: as it was printed, and for you alone."""

from __future__ import annotations

from pathlib import Path

from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.logs import serving_log
from tests.tui.reading import screen_text, settle


async def test_saving_and_copying_write_files_for_you_alone(make_app: Make, own_folders: Path) -> None:
    source = fakes.source(states.serving())
    source.logs[pieces.KEY] = serving_log(50)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+s")
        await pilot.pause()
        saved = own_folders / "sglang-30000.log"
        assert saved.read_bytes().count(b"\n") == source.logs[pieces.KEY].lines
        assert saved.stat().st_mode & 0o777 == 0o600
        assert "61 lines saved" in screen_text(app)
        await pilot.press("slash", *"Memory pool", "enter")
        await pilot.press("y")
        await pilot.pause()
        assert "Memory pool end." in (own_folders / "copied.txt").read_text()
        assert app.clipboard == (own_folders / "copied.txt").read_text()
        assert "1 line copied" in screen_text(app)


async def test_a_vllm_log_is_read_at_80_columns_and_copied_as_it_was_printed(make_app: Make) -> None:
    line = "(Worker_TP0 pid=7) INFO 11-29 17:08:36 [gpu_worker.py:295] Available KV cache memory: 11.2 GiB"
    state = states.watch_only()
    app = make_app(fakes.source(state, [line], milestones=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "17:08:36 TP0  Available KV cache memory: 11.2 GiB" in screen_text(app)
        await pilot.press("y")
        await pilot.pause()
        assert app.clipboard == line
        await pilot.press("w")
        await pilot.pause()
        assert "gpu_worker.py:295 Available KV" in screen_text(app)
