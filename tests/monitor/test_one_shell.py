"""Two servers that one shell or script has started share its session: what one leaves is not the other's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from specdash.intake.rules import default_rules
from specdash.monitor.memory import Memory
from specdash.monitor.samples import Process
from specdash.monitor.servers import Family, discover
from specdash.monitor.state import Server
from tests.monitor.frames_of import hello, process, processes, run, tick

TITLES = default_rules().titles
COMMANDS = {
    "vllm": ("python3", "/v/bin/vllm", "serve", "/m"),
    "sglang": ("python3", "-m", "sglang.launch_server", "--model-path", "/m"),
}
Trees = dict[str, list[Process]]


def tree(engine: str, pid: int, start: int, **place: Any) -> list[Process]:
    """A server's main process and what it has started, seconds later."""

    def one(nth: int, ppid: int, *argv: str) -> Process:
        at = start + (10 + nth if nth else 0)
        return process(pid + nth, ppid, *argv, start=at, started=float(at), **place)

    main = one(0, 90, *COMMANDS[engine], "--port", str(pid))
    if engine == "vllm":
        return [main, one(1, pid, "VLLM::EngineCore"), one(2, pid + 1, "VLLM::Worker_TP0")]
    return [main, one(1, pid, "sglang::scheduler_TP0"), one(2, pid, "sglang::detokenizer")]


def jobs(engine: str) -> Trees:
    """Started by hand in one shell: each is a job, in a group of its own."""
    return {
        name: tree(engine, pid, pid, sid=80, pgid=pid, out="/dev/pts/1")
        for name, pid in (("first", 100), ("second", 200))
    }


def script(engine: str) -> Trees:
    """Started by a script, one right after the other: the first's workers are younger than the second."""
    return {
        name: tree(engine, pid, start, sid=80, pgid=90, out=f"/log/{name}")
        for name, pid, start in (("first", 100, 100), ("second", 200, 101))
    }


def one_log(engine: str) -> Trees:
    """The same, and both write into the script's output."""
    return {
        name: tree(engine, pid, start, sid=80, pgid=90, out="/log/both")
        for name, pid, start in (("first", 100, 100), ("second", 200, 101))
    }


WAYS = pytest.mark.parametrize("way", [jobs, script, one_log])
ENGINES = pytest.mark.parametrize("engine", ["vllm", "sglang"])
DEAD = pytest.mark.parametrize(("dead", "other"), [("first", "second"), ("second", "first")])
Way = Callable[[str], Trees]


def killed(server: list[Process]) -> list[Process]:
    """What is left when its main process is: init has taken in its children."""
    main, *rest = server
    return [change(one, ppid=1) if one.ppid == main.pid else one for one in rest]


def change(one: Process, **values: Any) -> Process:
    return msgspec.structs.replace(one, **values)


def pids(some: list[Process]) -> set[int]:
    return {one.pid for one in some}


def everybody(family: Family) -> set[int]:
    return {family.main.pid, *(one.pid for one in family.members)}


@WAYS
@ENGINES
@DEAD
def test_what_a_dead_server_leaves_is_not_the_other_ones(
    way: Way, engine: str, dead: str, other: str
) -> None:
    trees = way(engine)
    left, living = killed(trees[dead]), trees[other]
    families = discover([*left, *living], TITLES)
    assert {family.orphaned: everybody(family) for family in families} == {
        True: pids(left),
        False: pids(living),
    }
    assert len(families) == 2


def watched(engine: str, way: Way, *, starting: str = "") -> tuple[Memory, Trees]:
    """Both were seen alive; ``starting`` has nothing below it yet."""
    trees = way(engine)
    if starting:
        trees[starting] = trees[starting][:1]
    table = [one for name in trees for one in trees[name]]
    return run(hello(1000.0), processes(1000.1, *table), tick(1001.0)), trees


def called(memory: Memory, pid: int) -> Server:
    [server] = [one for one in memory.picture.servers if one.pid == pid]
    return server


@pytest.mark.parametrize("starting", [False, True])
@WAYS
@ENGINES
@DEAD
def test_who_watched_knows_whose_they_are(
    way: Way, engine: str, dead: str, other: str, starting: bool
) -> None:
    memory, trees = watched(engine, way, starting=other if starting else "")
    left, living = killed(trees[dead]), trees[other]
    memory = run(processes(1002.1, *left, *living), tick(1003.0), memory=memory)
    assert len(memory.picture.servers) == 2
    gone, lives = called(memory, trees[dead][0].pid), called(memory, living[0].pid)
    assert gone.state == "crashed"
    assert {pid for pid, _ in gone.leftovers} == pids(left)
    assert (lives.gone_at, lives.processes) == (None, len(living))
    assert {rank.pid for rank in lives.ranks} <= pids(living)


@pytest.mark.parametrize("way", [jobs, script])
@DEAD
def test_one_that_has_no_workers_yet_is_given_none(way: Way, dead: str, other: str) -> None:
    trees = way("vllm")
    left, living = killed(trees[dead]), trees[other][:1]
    orphaned, lives = sorted(discover([*left, *living], TITLES), key=lambda one: not one.orphaned)
    assert (everybody(orphaned), everybody(lives)) == (pids(left), pids(living))


def test_who_may_be_either_ones_is_on_no_kill_list() -> None:
    """One script, one log, the core gone, too, and the other one only begins: nothing tells whose it is."""
    trees = one_log("vllm")
    _, _, worker = trees["first"]
    table = [change(worker, ppid=1), trees["second"][0]]
    [family] = discover(table, TITLES)
    assert family.unsure == {worker.pid}
    assert not family.ranks
    # When it has its own, all is clear.
    memory = run(hello(1000.0), processes(1000.1, *table), tick(1001.0))
    memory = run(processes(1002.1, table[0], *trees["second"]), tick(1003.0), memory=memory)
    assert called(memory, 200).processes == 3
    assert called(memory, worker.pid).leftovers == ((worker.pid, worker.start),)


def test_who_is_older_than_a_server_is_not_its_worker() -> None:
    trees = one_log("vllm")
    left, later = killed(trees["first"]), change(trees["second"][0], start=500, started=500.0)
    families = discover([*left, later], TITLES)
    assert [everybody(family) for family in families] == [pids(left), {later.pid}]


@WAYS
def test_a_worker_whose_engine_core_died_is_still_its_servers(way: Way) -> None:
    main, core, worker = way("vllm")["first"]
    table = [main, change(worker, ppid=1)]
    [family] = discover(table, TITLES)
    assert everybody(family) == {main.pid, worker.pid}
    memory = run(hello(1000.0), processes(1000.1, main, core, worker), tick(1001.0))
    memory = run(processes(1002.1, *table), tick(1003.0), memory=memory)
    assert [rank.pid for rank in called(memory, main.pid).ranks] == [worker.pid]


def test_it_is_still_its_servers_beside_another_that_has_its_own() -> None:
    trees = script("vllm")
    main, _, worker = trees["first"]
    families = discover([main, change(worker, ppid=1), *trees["second"]], TITLES)
    assert [everybody(family) for family in families] == [{main.pid, worker.pid}, pids(trees["second"])]


@pytest.mark.parametrize("way", [jobs, script])
@ENGINES
def test_two_dead_servers_are_two(way: Way, engine: str) -> None:
    left = [killed(server) for server in way(engine).values()]
    families = discover([one for server in left for one in server], TITLES)
    assert [family.orphaned for family in families] == [True, True]
    assert [everybody(family) for family in families] == [pids(server) for server in left]


def test_who_watched_two_die_that_wrote_into_one_log_knows_both() -> None:
    memory, trees = watched("vllm", one_log)
    left = {name: killed(server) for name, server in trees.items()}
    memory = run(processes(1002.1, *left["first"], *left["second"]), tick(1003.0), memory=memory)
    for name, server in trees.items():
        assert {pid for pid, _ in called(memory, server[0].pid).leftovers} == pids(left[name])


@ENGINES
def test_a_server_below_another_on_another_port_is_one_of_its_own(engine: str) -> None:
    """``vllm serve A & exec vllm serve B``: what was the script is B, and A its child."""
    inner, outer = script(engine).values()
    inner[0] = change(inner[0], ppid=outer[0].pid)
    families = discover([*inner, *outer], TITLES)
    assert [everybody(family) for family in families] == [pids(inner), pids(outer)]
    # The session is led by what was the shell of both.
    left = [change(one, sid=outer[0].pid, pgid=outer[0].pid) for one in killed(inner)]
    outer = [change(one, sid=outer[0].pid, pgid=outer[0].pid) for one in outer]
    families = discover([*left, *outer], TITLES)
    assert {family.orphaned: everybody(family) for family in families} == {
        True: pids(left),
        False: pids(outer),
    }


def test_what_a_router_starts_is_its_own() -> None:
    table = [
        process(pid, ppid, "llama-server", "--port", str(pid), start=pid, started=float(pid))
        for pid, ppid in ((100, 1), (101, 100))
    ]
    [family] = discover(table, TITLES)
    assert everybody(family) == {100, 101}


def test_an_engine_that_a_program_runs_by_itself_is_no_server_besides_it() -> None:
    trees = script("vllm")
    _, core, worker = tree("vllm", 300, 300, sid=80, pgid=90, out="/log/first")
    table = [trees["first"][0], change(core, ppid=299, maker="python3"), worker]
    alone = next(one for one in discover(table, TITLES) if not one.orphaned)
    assert everybody(alone) == {100}
    left = killed(trees["first"])
    leavings = [everybody(family) for family in discover([*left, *table[1:]], TITLES)]
    assert leavings == [pids(left), {core.pid, worker.pid}]
