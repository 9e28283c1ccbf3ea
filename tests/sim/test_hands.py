"""The agent's hands on the simulated host: its own processes, devices and folders, and nothing else."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import procfs
from specdash.monitor.frames import Gpus, Hello
from specdash.sim.folder import server_command
from specdash.sim.ports import free_port
from specdash.sim.scenarios import SCENARIOS
from specdash.sim.simulate import simulate
from tests.sim.guest import agent, members, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")


def target(pid: int) -> dict[str, int]:
    return {"pid": pid, "start": procfs.Stat(Path(f"/proc/{pid}/stat").read_bytes()).start}


async def test_the_leftover_of_gpu_1_is_found_by_its_open_card_and_ended() -> None:
    async with simulate("orphan") as sim, agent(sim, watch=False) as guest:
        boot = (await guest.hear(Hello)).boot
        await guest.hear(Gpus, lambda frame: frame.cards[1].used_mib > 70_000)
        answer = await guest.do("holders")
        [row] = answer["holders"]
        assert (row["kind"], row["cards"], row["title"]) == ("owner", [1], "sglang::scheduler_TP1")
        assert (row["ppid"], row["protected"], answer["denied"]) == (1, None, 0)
        assert answer["devices"][:2] == [str(sim.folder / "dev" / name) for name in ("nvidia-uvm", "nvidia0")]
        wish = {"signal": "KILL", "targets": [{"pid": row["pid"], "start": row["start"]}], "boot": boot}
        [done] = (await guest.do("signal", **wish))["targets"]
        assert done["result"] == "sent"
        guest.forget()
        await guest.hear(Gpus, lambda frame: frame.cards[1].used_mib < 1000)
        assert (await guest.do("holders"))["holders"] == []


async def test_the_stuck_server_is_one_family() -> None:
    async with simulate("zombie") as sim, agent(sim, watch=False) as guest:
        main = next(pid for pid, line in members(sim).items() if "launch_server" in line)
        answer = await guest.do("family", pids=[target(main)], run=None)
        found = {row["pid"] for row in answer["members"]}
        [apart] = set(members(sim)) - found
        assert found < set(members(sim))
        assert answer["doubtful"] == []
        ranks = [row for row in answer["members"] if "scheduler" in row["title"]]
        assert len(ranks) == 8
        holders = (await guest.do("holders"))["holders"]
        assert {row["kind"] for row in holders} == {"owner"}
        assert [row["cards"] for row in holders if row["pid"] != apart] == [[n] for n in range(8)]
        assert [row["cards"] for row in holders if row["pid"] == apart] == [[1]]


async def test_processes_of_this_machine_are_not_there() -> None:
    async with simulate("orphan") as sim, agent(sim, watch=False) as guest:
        boot = (await guest.hear(Hello)).boot
        stranger = await asyncio.create_subprocess_exec("sleep", "600")
        try:
            wish = {"signal": "KILL", "targets": [target(stranger.pid)], "boot": boot}
            assert (await guest.do("signal", **wish))["targets"][0]["result"] == "gone"
            assert stranger.returncode is None
        finally:
            stranger.kill()
            await stranger.wait()
        assert (await guest.do("leftovers"))["files"] == []
        assert list((sim.folder / "run").iterdir())


async def test_a_server_is_launched_and_known_by_its_record(tmp_path: Path) -> None:
    async with simulate("orphan", speed=50) as sim, agent(sim, watch=False) as guest:
        port = free_port()
        command = server_command(sim.folder, port, SCENARIOS["orphan"])
        wish: dict[str, Any] = {
            "argv": command,
            "env": {},
            "cwd": str(sim.folder / "srv"),
            "log": str(sim.log),
        }
        made = await guest.do("launch", **wish)
        assert made["folder"].startswith(str(sim.folder))
        assert abs(made["at"] - time.time()) < 36_000
        told = await guest.do("launched", run=made["token"])
        assert (told["alive"], told["exit"]) == (True, None)
        await until(lambda: sum("scheduler" in line for line in members(sim).values()) >= 8)
        found = (await guest.do("family", pids=[], run=made["token"]))["members"]
        assert len(found) >= 10
        supervisor = told["supervisor"]["pid"]
        assert supervisor not in [row["pid"] for row in found]
        assert (await guest.do("probe", ports=[port], paths=[str(sim.folder)]))["paths"][0]["writable"]
