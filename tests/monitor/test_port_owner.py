"""A port that somebody else has: said long before the server fails to bind it, and no answer of its own."""

from __future__ import annotations

from typing import Any

import pytest

from specdash.monitor import witness
from specdash.monitor.evidence import Evidence
from specdash.monitor.frames import AnyFrame
from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH
from specdash.monitor.samples import Process
from specdash.monitor.wants import wants
from tests.monitor.frames_of import COMMAND, hello, http, log, only_server, process, processes, run, server
from tests.monitor.starts import ARGS, LOADING

BIND_ERROR = (
    "[2026-11-02 01:30:00] INFO:     Application startup complete.\n"
    "[2026-11-02 01:30:00] ERROR:    [Errno 98] error while attempting to bind on address "
    "('0.0.0.0', 30000): address already in use\n"
)
SINCE = -172_800.0


def stranger(**more: Any) -> Process:
    return process(
        900, 1, "/usr/sbin/nginx", **{"comm": "nginx", "ports": (30000,), "started": SINCE, **more}
    )


def root(memory: Memory) -> tuple[str, str, str]:
    seen = only_server(memory)
    found = next(one for one in seen.diagnoses if one.root)
    return seen.state, found.key, found.evidence


def loading(*others: Process, seconds: int = 40, main: dict[str, Any] | None = None) -> Memory:
    family = server(**(main or {}))
    looks = [processes(10.0 + t, *family, *others) for t in range(2, seconds, 2)]
    return run(hello(), processes(1.0, *family, *others), log(10.0, ARGS + LOADING, start_=True), *looks)


def evidence(memory: Memory) -> Evidence:
    return witness.testify(memory.servers[0], memory.picture.gpus, memory.picture.now)


def alerts(memory: Memory) -> list[str]:
    return [alert.text for alert in memory.picture.alerts]


def test_a_taken_port_is_said_while_the_server_still_loads() -> None:
    memory = loading(stranger())
    assert only_server(memory).state == "loading"
    assert alerts(memory) == [
        "sglang:30000: port 30000 belongs to nginx (pid 900, 2 d 0 h older): this server cannot have it"
    ]
    seen = evidence(memory)
    assert (seen.port_owner_pid, seen.port_owner_age_s) == (900, memory.picture.now - SINCE)
    port = next(lamp for lamp in only_server(memory).lamps if lamp.name == "port")
    assert (port.says, port.value) == ("no", "30000 belongs to nginx (pid 900)")


def test_an_old_server_may_take_a_while_to_let_go_of_its_port() -> None:
    assert alerts(loading(stranger(), seconds=10)) == []


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((), id="nobody"),
        pytest.param((stranger(ports=(8080,)),), id="another port"),
        pytest.param((stranger(other_net=True),), id="another network namespace"),
    ],
)
def test_nobody_is_accused_of_what_is_free_or_elsewhere(others: tuple[Process, ...]) -> None:
    memory = loading(*others)
    assert alerts(memory) == []
    assert evidence(memory).port_owner_pid is None


def test_a_server_in_a_network_of_its_own_shares_no_port_with_a_proxy_in_front_of_it() -> None:
    assert alerts(loading(stranger(), main={"other_net": True})) == []


def test_a_server_that_listens_itself_has_its_port_whoever_holds_it_too() -> None:
    assert alerts(loading(stranger(), main={"ports": (30000,)})) == []


@pytest.mark.parametrize(
    ("host", "bind", "taken"),
    [
        ("127.0.0.1", "10.0.0.5", False),
        ("10.0.0.5", "10.0.0.5", True),
        ("0.0.0.0", "10.0.0.5", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("localhost", "127.0.0.1", True),
    ],
)
def test_two_addresses_of_one_host_have_each_their_own_port(host: str, bind: str, taken: bool) -> None:
    main = process(100, 1, *COMMAND, "--host", host)
    memory = run(hello(), processes(1.0, main, stranger(bind=bind)))
    assert (memory.servers[0].port_owner is not None) is taken


def test_an_answer_of_somebody_else_makes_no_server_ready() -> None:
    answers = (http(60.0, HEALTH, status=200), processes(62.0, *server(), stranger()))
    fresh: tuple[AnyFrame, ...] = (hello(), processes(1.0, *server(), stranger()))
    memory = run(*fresh, *answers)
    assert only_server(memory).state != "ready"
    late = run(http(63.0, HEALTH, status=200), memory=memory)
    assert "/health" not in only_server(late).truth
    assert [lamp.at for lamp in only_server(late).lamps] == [None] * 5, "nobody has answered for it"
    assert wants(memory).polls == (), "a stranger is not asked"
    alone = run(hello(), processes(1.0, *server()), answers[0], processes(62.0, *server()))
    assert only_server(alone).state == "ready"


def test_a_server_that_could_not_bind_names_who_has_the_port() -> None:
    memory = run(log(100.0, BIND_ERROR, 9999), memory=loading(stranger()))
    assert root(memory) == ("crashed", "stale_process_on_port", "pid 900 has it, up 2 d 0 h")


def test_so_does_one_that_has_died_of_it() -> None:
    traceback = "Traceback (most recent call last):\nOSError: [Errno 98] Address already in use\n"
    memory = run(log(100.0, traceback, 9999), processes(102.0, stranger()), memory=loading(stranger()))
    state, key, evidence = root(memory)
    assert (state, key) == ("crashed", "stale_process_on_port")
    assert evidence.startswith("OSError: [Errno 98] Address already in use (pid 900 has it, ")


def test_the_agent_is_asked_about_ports_that_nobody_of_the_servers_holds_yet() -> None:
    assert wants(loading()).ports == {30000}
    assert wants(loading(main={"ports": (30000,)})).ports == frozenset()
