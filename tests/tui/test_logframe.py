from __future__ import annotations

import pytest

from specdash.logs.buffer import Break
from specdash.monitor.serverparts import LogSource
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.logframe import LogPane, no_log_rows, short_path
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle


def test_a_file_that_is_only_called_log_is_named_with_its_folder() -> None:
    assert short_path("/var/log/server.log") == "server.log"
    assert short_path("/srv/main/log") == "main/log"
    assert short_path("log") == "log"


def test_the_name_of_an_empty_log_is_never_cut() -> None:
    path = "/tmp/a-folder-with-a-long-name/another-folder/server.log"
    rows = no_log_rows(LogSource(path=path, kind="file", says="", size=0), 30)
    assert max(map(width_of, rows)) <= 30
    assert path in "".join(text_of(line).strip() for line in rows)


@pytest.mark.parametrize("how", ["rotated", "truncated"])
async def test_the_frame_counts_lines_as_the_file_that_is_there_now_has_them(
    make_app: Make, how: Break
) -> None:
    source = fakes.source(states.serving())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        buffer = source.log(states.serving().servers[0].key)
        assert buffer is not None
        before = buffer.lines
        buffer.append(b"first\nsecond\nthird\n", break_=how)
        await settle(pilot)
        assert f"3 lines and {before} of the file before" in screen_text(app)
        log = app.board.query_one(LogPane)
        log.jump(before + 2)
        await settle(pilot)
        assert "line 2 of 3 ·" in screen_text(app)
        log.jump(before - 1)
        await settle(pilot)
        assert f"line {before - 1} of {before} of the file before" in screen_text(app)
