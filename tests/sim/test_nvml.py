from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest

from specdash.agent.readings import Readings, identity
from specdash.sim import nvml


def start_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[19])


def state(gpu: int, *pids: int, mib: int = 77824) -> dict[str, Any]:
    held = [[pid, start_of(pid)] for pid in pids]
    mood = {"util": [100, 0], "watts": [138, 9], "temp": 46, "mhz": 2407}
    shares = [{"gpu": gpu, "pid": pids[0], "mib": mib, "held_by": held}]
    return {"processes": {}, "shares": shares, "moods": {str(gpu): mood}}


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "FRESH", 0.0)


def owners(made: Any, card: Any) -> list[tuple[int, int]]:
    return [(p.pid, p.usedGpuMemory >> 20) for p in made.nvmlDeviceGetComputeRunningProcesses(card)]


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-E", "-S", "-s", "-c", "import signal; signal.pause()"])


def test_every_name_it_offers_is_one_of_the_real_binding() -> None:
    made = nvml.module(lambda: 0.0, list, "/proc")
    names = {name for name in vars(made) if name.startswith(("nvml", "NVML"))}
    assert len(names) > 30
    assert {name for name in names if not hasattr(pynvml, name)} == set()
    for name in ("NVML_TEMPERATURE_GPU", "NVML_CLOCK_SM", "NVML_ERROR_NOT_SUPPORTED", "nvmlMemory_v2"):
        assert getattr(made, name) == getattr(pynvml, name)


def test_an_unused_card_reads_as_an_idle_one() -> None:
    made = nvml.module(lambda: 1e9, list, "/proc")
    made.nvmlInit()
    assert made.nvmlDeviceGetCount() == 8
    values = Readings().read(made, made.nvmlDeviceGetHandleByIndex(3), 0.0)
    assert values["total_mib"] == 97887
    assert values["used_mib"] == 0
    assert values["util"] == 0
    assert values["processes"] == []
    assert values["power_limit_w"] == 600
    assert "error" not in values
    assert "missing" not in values
    assert len({identity(made, made.nvmlDeviceGetHandleByIndex(n))["uuid"] for n in range(8)}) == 8


@pytest.mark.usefixtures("no_cache")
def test_a_cards_memory_is_free_when_its_owner_is_really_dead() -> None:
    owner = sleeper()
    try:
        servers = [state(2, owner.pid)]
        made = nvml.module(lambda: 1e9, lambda: servers, "/proc")
        card = made.nvmlDeviceGetHandleByIndex(2)
        before = Readings().read(made, card, 0.0)
        assert before["used_mib"] == 77824
        assert owners(made, card) == [(owner.pid, 77824)]
        assert before["util"] == 100
    finally:
        owner.kill()
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # a zombie now: it holds nothing any more
    assert Readings().read(made, card, 0.0)["used_mib"] == 0
    owner.wait()
    assert Readings().read(made, card, 0.0)["util"] == 0


@pytest.mark.usefixtures("no_cache")
def test_a_fork_of_a_dead_owner_keeps_the_memory_under_the_dead_ones_name() -> None:
    owner, fork = sleeper(), sleeper()
    try:
        servers = [state(1, owner.pid, fork.pid)]
        made = nvml.module(lambda: 1e9, lambda: servers, "/proc")
        owner.kill()
        owner.wait()
        values = Readings().read(made, made.nvmlDeviceGetHandleByIndex(1), 0.0)
        assert values["used_mib"] == 77824
        assert owners(made, 1) == [(owner.pid, 77824)]
        assert values["util"] == 0
    finally:
        fork.kill()
        fork.wait()


@pytest.mark.usefixtures("no_cache")
def test_a_card_warms_and_cools_while_its_load_jumps() -> None:
    owner = sleeper()
    try:
        now, servers = [1e9], [state(2, owner.pid)]
        servers[0]["moods"]["2"]["temp"] = 39
        made = nvml.module(lambda: now[0], lambda: servers, "/proc")

        def degrees() -> int:
            return int(made.nvmlDeviceGetTemperature(2, 0)) - 2  # cards differ a little

        assert degrees() == 39
        servers[0]["moods"]["2"]["temp"] = 58
        assert degrees() == 39
        now[0] += 5.0
        assert 40 < degrees() < 50
        now[0] += 300.0
        assert degrees() == 58
    finally:
        owner.kill()
        owner.wait()
    assert degrees() == 58
    now[0] += 300.0
    assert degrees() == nvml.IDLE["temp"]


def test_an_error_is_an_exception_of_the_bindings_kind() -> None:
    made = nvml.module(lambda: 0.0, list, "/proc")
    with pytest.raises(made.NVMLError) as caught:
        made.nvmlDeviceGetHandleByIndex(8)
    assert caught.value.value == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert issubclass(made.NVMLError_NotSupported, made.NVMLError)


def test_it_can_be_compiled_by_the_oldest_python_that_a_host_may_have() -> None:
    import ast
    from pathlib import Path

    for name in ("adapter.py", "nvml.py"):
        source = Path(nvml.__file__).with_name(name).read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 6))


def test_who_asks_while_another_thread_looks_sees_no_card_without_its_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pid, seen = os.getpid(), list[int]()

    def servers() -> list[dict[str, Any]]:
        if not seen:  # the other thread asks in the middle of our look
            seen.append(0)
            asking = threading.Thread(target=lambda: seen.append(len(cards.owners(3))))
            asking.start()
            asking.join()
        return [state(3, pid)]

    monkeypatch.setattr(nvml, "FRESH", 60.0)
    cards = nvml.Cards(lambda: 1e9, servers, "/proc")
    assert len(cards.owners(3)) == 1
    assert seen == [0, 1]
