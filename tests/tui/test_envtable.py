"""What reached which rank: nothing that differs is hidden, nothing that was not seen is claimed."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.serverparts import EnvCell, EnvRow
from specdash.monitor.state import Server
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.envtable import deviates, env_rows, env_title, ranks_in_words
from tests.tui import fakes, sheets, states
from tests.tui.conftest import Make
from tests.tui.reading import SIZES, screen_text, settle

SEEN = EnvCell(state="seen", value="1")


def server(*rows: EnvRow) -> Server:
    return msgspec.structs.replace(states.serving().servers[0], environment=rows)


def lines(who: Server, width: int) -> list[str]:
    return [text_of(line).rstrip() for line in env_rows(who, width)]


def variable(name: str, *cells: EnvCell, main: EnvCell = SEEN) -> EnvRow:
    return EnvRow(name=name, main=main, cells={f"TP{at}": cell for at, cell in enumerate(cells)})


def test_a_variable_that_is_missing_on_one_rank_is_said_with_the_rank_and_stands_first() -> None:
    told = lines(sheets.mixed_environment().servers[0], 116)
    assert told[0].split() == ["server", *(f"TP{i}" for i in range(8)), "value"]
    assert told[1].split() == ["NCCL_ALGO", *"●●●●○●●●●", "Ring"]
    assert told[2].strip() == "TP3: missing"


def test_a_rewritten_value_is_said_with_who_says_so() -> None:
    told = "\n".join(lines(sheets.mixed_environment().servers[0], 116))
    assert "all 8 ranks: rewritten to Simple (says NCCL)" in told


def test_what_a_title_covers_is_unknown_and_no_deviation() -> None:
    covered = EnvCell(state="unknown", value="1", source="resource tracker")
    entry = variable("CUDA_X", covered, EnvCell(state="unknown"))
    assert not deviates(entry)
    told = lines(server(entry), 76)
    assert told[1].split() == ["CUDA_X", "●", "?", "?", "1"]
    assert "? unknown: a process title covers it, or it may not be read" in told
    assert not [line for line in told if "missing" in line]


def test_what_a_server_set_for_its_workers_alone_is_no_fault() -> None:
    entry = variable("VLLM_X", SEEN, SEEN, main=EnvCell(state="missing"))
    assert not deviates(entry)
    told = lines(server(entry), 76)
    assert "○ below server: not in the main process, set for what it started" in told
    assert not [line for line in told if "missing" in line]
    assert "○ missing: not in the process" in lines(server(variable("X", EnvCell(state="missing"))), 76)


def test_another_inherited_value_is_a_deviation_even_where_the_rank_cannot_be_read() -> None:
    entry = variable("CUDA_X", EnvCell(state="unknown", value="0", source="resource tracker"))
    assert deviates(entry)
    assert "unknown, must have been given 0 (says resource tracker)" in "\n".join(lines(server(entry), 116))


@pytest.mark.parametrize("width", [56, 76, 116, 196])
def test_every_width_says_the_same_and_no_row_is_wider(width: int) -> None:
    who = sheets.mixed_environment().servers[0]
    assert all(width_of(line) <= width for line in env_rows(who, width))
    told = " ".join("\n".join(lines(who, width)).split())
    for words in ("TP3: missing", "rewritten to Simple", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "Ring"):
        assert words in told, width


def test_sixteen_ranks_on_a_narrow_screen_are_told_in_words() -> None:
    cells = [EnvCell(state="missing") if at in (3, 4, 5, 9) else SEEN for at in range(16)]
    told = "\n".join(lines(server(variable("NCCL_ALGO", *cells)), 76))
    assert "TP0-2, TP6-8, TP10-15" in told
    assert "TP3-5, TP9: missing" in told


def test_ranks_are_named_shortly() -> None:
    assert ranks_in_words(["TP0", "TP1", "TP2"], 3) == "all 3 ranks"
    assert ranks_in_words(["TP0"], 1) == "TP0"
    assert ranks_in_words(["DP0 TP0", "DP0 TP1", "DP1 TP0"], 4) == "DP0 TP0-1, DP1 TP0"
    assert ranks_in_words(["Worker", "pid 7"], 4) == "Worker, pid 7"


def test_a_server_of_which_nothing_was_read_says_so() -> None:
    assert "was seen in its processes" in lines(server(), 116)[0]
    assert "0 variables" in text_of(env_title(server()))


async def test_v_shows_the_table_at_every_size_and_v_closes_it(make_app: Make) -> None:
    app = make_app(fakes.source(sheets.mixed_environment()))
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            await pilot.press("v")
            await settle(pilot)
            assert "environment by rank of sglang:30000   5 variables, 2 differ" in screen_text(app)
            assert "TP3: missing" in screen_text(app)
            await pilot.press("v")
            await settle(pilot)
            assert "environment by rank" not in screen_text(app)


async def test_without_a_server_there_is_nothing_to_look_into(make_app: Make) -> None:
    app = make_app(fakes.source(states.no_server()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("v")
        await settle(pilot)
        assert "no server to look into" in screen_text(app)
