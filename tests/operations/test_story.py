"""The night that this is for, by commands alone: stalled, killed, cleaned, relaunched, patched, serving."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from specdash.sim.simulate import simulate
from tests.operations.simulated import Operator
from tests.sim.guest import turn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the simulated host is made of /proc")
SPEED = 240.0


async def test_the_whole_night_from_a_stalled_server_to_one_that_gives_a_token(tmp_path: Path) -> None:
    async with simulate("zombie", speed=SPEED) as sim:
        anna = Operator(sim, tmp_path / "anna")
        config = sim.folder / "models" / "draft" / "config.json"

        killed = await anna.run("kill", "--yes", "--json")
        assert killed.code == 1, killed.err
        steps = killed.document["plan"]
        assert steps[0]["preview"][0].startswith("SIGTERM ")
        assert [step["state"] for step in steps[:-1]].count("failed") == 0
        told = steps[-1]["evidence"]
        assert "not clean: GPU 1 holds 76.0 GiB" in told
        dead = told.partition("for pid ")[2].partition(",")[0]
        assert f"for pid {dead}, which has ended: `clean` finds and ends what keeps it" in told

        shown = await anna.run("clean", "--dry-run")
        assert "SIGTERM" in shown.out
        assert f"keeps what dead {dead} opened" in shown.out, "the same number in both"
        cleaned = await anna.run("clean", "--yes", "--json")
        assert cleaned.code == 0, cleaned.err
        assert "GPU 0–7 clean" in cleaned.document["plan"][-1]["evidence"]

        refused = await anna.run("launch", "--yes", "--json")
        assert refused.code == 1
        assert "131072 < 262144" in refused.document["refusal"]
        failed = await anna.run("launch", "--yes", "--json", "--force", "draft")
        assert failed.code == 1, failed.err
        assert "crashed: the draft's context is shorter" in failed.document["plan"][2]["evidence"]
        assert f"{config} max_position_embeddings=262144" in failed.err

        before = config.read_bytes()
        patched = await anna.run("patch", str(config), "max_position_embeddings=262144", "--yes", "--json")
        assert patched.code == 0, patched.err
        diff = patched.document["plan"][0]["preview"]
        assert '+  "max_position_embeddings": 262144,' in diff
        assert config.read_bytes() == before.replace(b"131072", b"262144")

        served = await anna.run("restart", "--yes", "--json")
        assert served.code == 0, served.err
        assert served.document["plan"][-1]["evidence"].startswith("a token came back")
        status = await anna.run("status", "--json")
        assert [server["state"] for server in status.document["servers"]][:1] == ["ready"]

        undone = await anna.run("undo", "--yes")
        assert undone.code == 0, undone.err
        assert config.read_bytes() == before


async def test_a_kill_whose_client_is_killed_goes_on_with_the_same_command(tmp_path: Path) -> None:
    async with simulate("healthy", speed=2000) as sim:
        anna = Operator(sim, tmp_path / "anna")
        assert (await anna.run("status", "--json")).code == 0
        turn(sim, 20)  # the start that is cut off takes a minute
        first = await anna.begin("restart", "--yes", "--json")
        assert first.stderr is not None
        async for line in first.stderr:
            if line.startswith(("▸ 7/8".encode(), "✓ 6/8".encode())):
                break
        first.send_signal(signal.SIGKILL)
        await first.wait()
        turn(sim, 2000)
        again = await anna.run("restart", "--yes", "--json")
        assert again.code == 0, again.err
        assert "this was cut off and goes on" in again.err
        assert [step["state"] for step in again.document["plan"]][-3:] == ["done"] * 3
        status = await anna.run("status", "--json")
        living = [server for server in status.document["servers"] if server["state"] != "stopped"]
        assert len(living) == 1


async def test_what_is_not_confirmed_or_not_allowed_changes_nothing(tmp_path: Path) -> None:
    async with simulate("zombie", speed=SPEED) as sim:
        anna = Operator(sim, tmp_path / "anna")
        for arguments, code, words in (
            (("launch", "--yes"), 1, "nothing is known that could be launched"),
            (("kill",), 4, "--yes"),
            (("kill", "--yes", "--watch"), 4, "--watch never does"),
            (("clean", "--watch", "--yes"), 4, "--watch never does"),
            (("kill", "--yes", "--server", "vllm:8000"), 1, "no server vllm:8000"),
            (("patch", "config.json", "a=1"), 2, "whole path"),
            (("patch", "/x.json", "a"), 2, "no KEY=VALUE"),
            (("undo", "--yes"), 1, "no patch of this host"),
            (("restart", "--variant", "fast", "--yes"), 2, "no variant fast"),
            (("kill", "--dry-run"), 0, ""),
        ):
            said = await anna.run(*arguments)
            assert said.code == code, (arguments, said)
            assert words in said.err, (arguments, said)
        status = await anna.run("status", "--json")
        assert status.document["servers"][0]["state"] == "stalled"
        assert len(status.document["servers"][0]["workers"]) == 8
        checked = await anna.run("check")
        assert checked.code == 1
        assert "✖ draft: its context is shorter" in checked.out
        doctor = await anna.run("doctor", "--json")
        assert doctor.document["ok"] is True
        gone = await anna.run("kill", "--yes", "--port", "1")
        assert gone.code == 3, gone
