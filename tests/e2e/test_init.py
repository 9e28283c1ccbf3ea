"""``specdash init`` over real SSH on the simulated host."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specdash.profile import loading
from specdash.sim.simulate import simulate
from tests.operations.simulated import Operator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the simulated host is made of /proc")


async def test_a_host_becomes_a_profile_that_passes_and_that_a_launch_can_use(tmp_path: Path) -> None:
    async with simulate("healthy", speed=2000) as sim:
        anna = Operator(sim, tmp_path / "anna")
        written = await anna.run("init")
        assert (written.code, written.out) == (0, ""), written.err
        assert "specdash config check" in written.err
        path = anna.home / "specdash.toml"
        before = path.read_bytes()
        main = loading.load(path).servers["main"]
        assert main.command[:3] == ("python3", "-m", "sglang.launch_server")
        assert main.log == str(sim.log)
        assert main.env["NCCL_ALGO"] == "Ring"
        assert str(sim.folder / "models" / "draft") in main.needs.files

        again = await anna.run("init")
        assert again.code == 4
        assert "not overwritten" in again.err
        assert path.read_bytes() == before

        shown = await anna.run("init", "--output", "-", "--json")
        assert shown.document["servers"] == [f"sglang:{sim.server_port}"]
        assert shown.document["profile"].splitlines()[1:] == before.decode().splitlines()[1:]

        planned = await anna.run("restart", "--dry-run")
        assert planned.code == 0, planned.err
        assert "main" in planned.out
        served = await anna.run("restart", "--yes", "--json")
        assert served.code == 0, served.err
        assert served.document["plan"][-1]["evidence"].startswith("a token came back")


async def test_what_a_dead_server_left_is_no_command_to_start_it_by(tmp_path: Path) -> None:
    async with simulate("zombie", speed=2000) as sim:
        anna = Operator(sim, tmp_path / "anna")
        killed = await anna.run("kill", "--yes", "--json")
        assert killed.code == 1, killed.err
        written = await anna.run("init")
        assert written.code == 0, written.err
        text = (anna.home / "specdash.toml").read_text()
        assert "sglang::" not in text
        assert not loading.parse(text).servers
        assert "#[servers.main]" in text
