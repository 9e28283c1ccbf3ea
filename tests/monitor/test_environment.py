"""Whether NCCL's tuning reached the ranks: seen, missing, rewritten, or honestly unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.monitor.frames import AnyFrame
from specdash.monitor.memory import Memory
from specdash.monitor.samples import Process
from specdash.monitor.serverparts import EnvCell, EnvRow
from specdash.monitor.status import status_document
from tests.monitor.frames_of import COMMAND, LOG, hello, log, only_server, process, processes, run

ALL = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL", "HF_HUB_OFFLINE": "1"}
NCCL = "vm:{pid}:{pid} [1] NCCL INFO {name} set by environment to {value}\n"
START = "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"


def main(env: dict[str, str] | None = ALL, **more: Any) -> Process:
    return process(100, 1, *COMMAND, out=LOG, err=LOG, env=env, **more)


def tracker(env: dict[str, str]) -> Process:
    code = "from multiprocessing.resource_tracker import main;main(31)"
    return process(101, 100, "python3", "-c", code, env=env)


def spawned(env: dict[str, str] | None, pid: int = 102) -> Process:
    """A rank before it has given itself a title."""
    return process(pid, 100, "python3", "-c", "from multiprocessing.spawn import spawn_main", env=env)


def titled(env: dict[str, str] | None = None, pid: int = 102, **more: Any) -> Process:
    """A rank whose title has overwritten its environment, all but what stood at the end."""
    return process(
        pid, 100, f"sglang::scheduler_TP{pid - 102}", env=env or {}, **{"env_blanked": True, **more}
    )


def seen(*frames: AnyFrame) -> Memory:
    return run(hello(), *frames)


def cell(memory: Memory, name: str, rank: str = "TP0") -> EnvCell:
    return row(memory, name).cells[rank]


def row(memory: Memory, name: str) -> EnvRow:
    return next(row for row in only_server(memory).environment if row.name == name)


def test_a_rank_that_was_seen_before_its_title_keeps_the_environment_of_that_first_sight() -> None:
    memory = seen(processes(1.0, main(), spawned(ALL)), processes(3.0, main(), titled()))
    assert cell(memory, "NCCL_ALGO") == EnvCell(state="seen", value="Ring")
    assert row(memory, "NCCL_ALGO").main == EnvCell(state="seen", value="Ring")


def test_a_title_that_overwrote_the_environment_makes_it_unknown_and_never_missing() -> None:
    memory = seen(processes(1.0, main(), titled()))
    assert cell(memory, "NCCL_ALGO") == EnvCell(state="unknown", value="Ring", source="main process")


def test_the_resource_tracker_says_what_the_ranks_were_given() -> None:
    inherited = {**ALL, "NCCL_CUMEM_ENABLE": "0"}
    memory = seen(processes(1.0, main(), tracker(inherited), titled({"CUDA_DEVICE_MAX_CONNECTIONS": "8"})))
    assert cell(memory, "NCCL_CUMEM_ENABLE") == EnvCell(state="unknown", value="0", source="resource tracker")
    assert row(memory, "NCCL_CUMEM_ENABLE").main.state == "missing", "the engine set it for its children"
    assert cell(memory, "CUDA_DEVICE_MAX_CONNECTIONS") == EnvCell(state="seen", value="8"), (
        "what is left of it is believed"
    )


def test_an_intact_environment_without_the_name_is_missing_it() -> None:
    memory = seen(
        processes(1.0, main(), spawned({"NCCL_PROTO": "LL"}), spawned(ALL, 103)),
        processes(3.0, main(), titled(), titled(pid=103)),
    )
    assert cell(memory, "NCCL_ALGO") == EnvCell(state="missing")
    assert cell(memory, "NCCL_ALGO", "TP1").state == "seen"


def test_another_value_than_the_server_was_started_with_is_rewritten() -> None:
    memory = seen(
        processes(1.0, main(), spawned({**ALL, "NCCL_ALGO": "Tree"})), processes(3.0, main(), titled())
    )
    assert cell(memory, "NCCL_ALGO") == EnvCell(state="rewritten", value="Tree")


def test_an_environment_that_may_not_be_read_is_unknown() -> None:
    memory = seen(processes(1.0, main(), titled(None, env_blanked=False, pid=102)))
    denied = seen(processes(1.0, main(), process(102, 100, "sglang::scheduler_TP0", env=None)))
    assert cell(denied, "NCCL_ALGO").state == "unknown"
    assert cell(memory, "NCCL_ALGO").state == "missing"


def test_a_process_that_replaces_its_program_counts_as_what_it_became() -> None:
    shell = process(102, 100, "sh", "-c", "NCCL_ALGO=Tree exec python3 -m worker", env=ALL)
    memory = seen(
        processes(1.0, main(), shell),
        processes(2.0, main(), spawned({**ALL, "NCCL_ALGO": "Tree"})),
        processes(3.0, main(), titled()),
    )
    assert cell(memory, "NCCL_ALGO").value == "Tree"


def test_a_pid_that_another_process_got_is_another_process() -> None:
    other = msgspec.structs.replace(titled(), start=7)
    memory = seen(processes(1.0, main(), spawned(ALL)), processes(3.0, main(), other))
    assert cell(memory, "NCCL_ALGO").state == "unknown"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NCCL_ALGO", "Ring", EnvCell(state="seen", value="Ring", source="NCCL")),
        ("NCCL_ALGO", "Tree", EnvCell(state="rewritten", value="Tree", source="NCCL")),
        ("NCCL_IB_DISABLE", "1.", EnvCell(state="seen", value="1", source="NCCL")),
        ("NCCL_BUFFSIZE", "4194304.", EnvCell(state="seen", value="4194304", source="NCCL")),
    ],
)
def test_what_nccl_itself_says_outranks_a_blanked_environment(
    name: str, value: str, expected: EnvCell
) -> None:
    given = {**ALL, "NCCL_IB_DISABLE": "1", "NCCL_BUFFSIZE": "0x400000"}
    memory = seen(
        processes(1.0, main(given), titled(), titled(pid=103)),
        log(2.0, START + NCCL.format(pid=102, name=name, value=value), start_=True),
    )
    assert cell(memory, name) == expected
    assert cell(memory, name, "TP1").state == "unknown", "the line speaks for its own process"


def test_inside_a_container_the_log_names_a_rank_by_its_inner_pid() -> None:
    memory = seen(
        processes(1.0, main(), titled(nspid=42)),
        log(2.0, START + NCCL.format(pid=42, name="NCCL_ALGO", value="Ring"), start_=True),
    )
    assert cell(memory, "NCCL_ALGO").source == "NCCL"


def test_a_variable_that_a_hook_set_inside_the_process_is_there_after_all() -> None:
    memory = seen(
        processes(1.0, main({}), spawned({})),
        processes(2.0, main({}), titled()),
        log(3.0, START + NCCL.format(pid=102, name="NCCL_ALGO", value="Ring"), start_=True),
    )
    assert cell(memory, "NCCL_ALGO") == EnvCell(state="seen", value="Ring", source="NCCL")


def test_what_a_hook_has_changed_inside_the_process_is_rewritten() -> None:
    memory = seen(
        processes(1.0, main(), spawned(ALL)),
        processes(2.0, main(), titled()),
        log(3.0, START + NCCL.format(pid=102, name="NCCL_ALGO", value="Tree"), start_=True),
    )
    assert cell(memory, "NCCL_ALGO") == EnvCell(state="rewritten", value="Tree", source="NCCL")


def test_only_what_steers_the_engine_is_shown() -> None:
    memory = seen(processes(1.0, main({**ALL, "LOCAL_RANK": "0"}), spawned(ALL)))
    names = [one.name for one in only_server(memory).environment]
    assert names == ["HF_HUB_OFFLINE", "NCCL_ALGO", "NCCL_PROTO"]


def test_the_document_has_it_by_variable_and_rank() -> None:
    memory = seen(processes(1.0, main(), spawned(ALL)), processes(3.0, main(), titled()))
    env = msgspec.to_builtins(status_document(memory.picture))["servers"][0]["env"]
    assert env["NCCL_ALGO"] == {"TP0": {"state": "seen", "value": "Ring", "source": None}}


def test_no_log_can_make_us_hold_more_variables_than_there_are() -> None:
    flood = "".join(NCCL.format(pid=n, name=f"NCCL_X{n}", value=n) for n in range(1, 3000))
    flood += "".join(NCCL.format(pid=1, name=f"NCCL_Y{n}", value=n) for n in range(200))
    memory = seen(processes(1.0, main()), log(2.0, START + flood, start_=True))
    told = memory.servers[0].reading.environment
    assert len(told) == 1024
    assert max(map(len, told.values())) == 64
