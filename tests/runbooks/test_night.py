"""The story's whole list as a runbook: interrupted by SIGKILL and by a cut link, and completed."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from specdash.operations.journal import Journal
from specdash.reports.gather import gather
from specdash.reports.page import page
from specdash.runbooks.runs import Runs
from specdash.sim.simulate import Simulation, simulate
from tests.operations.simulated import Operator, Said
from tests.runbooks.relay import relayed
from tests.sim.guest import turn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the simulated host is made of /proc")

BOOK = """
schema = 1
[runbooks.night]
about = "kill the zombie, clean, check, patch the draft, start, prove it"
steps = [
  {{ check = "state == 'stalled'", title = "the server is stuck" }},
  {{ do = "kill", title = "kill the zombie" }},
  {{ do = "clean", title = "clean the GPUs" }},
  {{ wait = "gpu.used_mib < baseline", within = "2m", title = "0 MB on every GPU" }},
  {{ run = ["stat", "-c", "%s bytes", "{folder}/tmp/benchmark_eagle3.py"], title = "benchmark there" }},
  {{ do = "check", force = ["draft"], title = "preflight" }},
  {{ do = "patch", title = "let the draft fit" }},
  {{ do = "launch", title = "start with three steps" }},
  {{ wait = "milestone capture end on all ranks", within = "2m", title = "captured on all ranks" }},
  {{ check = "state == 'ready' and gpu.orphan_mib == 0", title = "it serves" }},
  {{ manual = "tell the team" }},
  {{ notify = "the night is over" }},
]
"""


async def _heard(process: asyncio.subprocess.Process, words: Iterable[str]) -> list[str]:
    """What a command says on stderr, up to the line that begins with one of these."""
    assert process.stderr is not None
    said: list[str] = []
    async for raw in process.stderr:
        said.append(raw.decode())
        if said[-1].startswith(tuple(words)):
            return said
    raise AssertionError(f"{words} was never said:\n{''.join(said)}")


async def _rest(process: asyncio.subprocess.Process) -> Said:
    out, err = await process.communicate()
    assert process.returncode is not None
    return Said(process.returncode, out.decode(), err.decode())


def _anna(sim: Simulation, home: Path) -> Operator:
    home.mkdir()
    (home / "specdash.toml").write_text(BOOK.format(folder=sim.folder))
    return Operator(sim, home)


async def test_the_night_is_carried_through_a_crash_and_a_cut_link_and_nothing_is_done_twice(
    tmp_path: Path,
) -> None:
    async with simulate("zombie", speed=240) as real, relayed(real, tmp_path) as (sim, relay):
        anna = _anna(sim, tmp_path / "anna")

        first = await anna.begin("runbook", "night", "--yes", "--json")
        await _heard(first, ("✓ 1/4 ask the main process to end",))
        first.send_signal(signal.SIGKILL)
        await first.wait()

        turn(sim, 20)  # the link is cut while the server starts
        second = await anna.begin("runbook", "night", "--yes", "--json")
        said = await _heard(second, ("▸ 3/4 follow it until it serves",))
        assert any(
            line.startswith("this goes on: night: at step 2 of 12, “kill the zombie”") for line in said
        )
        await relay.cut(2.0)
        turn(sim, 240)
        assert relay.cuts
        stopped = await _rest(second)
        assert stopped.code == 1, stopped.err
        assert "the link is lost" in stopped.err
        assert "“tell the team” waits for a person (the same command with --tick goes on)" in stopped.err

        over = await anna.run("runbook", "night", "--yes", "--json", "--tick")
        assert over.code == 0, over.err
        steps = over.document["steps"]
        assert [step["state"] for step in steps] == ["done"] * 12, over.out
        evidence = {step["title"]: " ".join(seen["text"] for seen in step["evidence"]) for step in steps}
        assert "GPU 1 holds 76.0 GiB" in evidence["kill the zombie"]
        assert evidence["clean the GPUs"].startswith("GPU 0–7 clean")
        assert "5518 bytes" in evidence["benchmark there"]
        assert evidence["start with three steps"].startswith("a token came back")
        assert evidence["captured on all ranks"] == "capture ended on 8 ranks"
        assert over.document["ok"] is True

        # Nothing was done twice: one plan for each operation, one living server, one start in its log.
        folder = anna.home / "state" / "specdash"
        plans = [entry.plan.kind for entry in Journal(folder / "operations").all()]
        assert sorted(plans) == ["clean", "kill", "launch", "patch"]
        status = await anna.run("status", "--json")
        living = [server for server in status.document["servers"] if server["state"] != "stopped"]
        assert [server["state"] for server in living] == ["ready"]
        run = next(Runs(folder / "runbooks").all())
        kept = Runs(folder / "runbooks").read(run.id)
        assert kept is not None
        assert {server.state for sample in kept[1] for server in sample.servers} >= {"stalled", "ready"}

        report = gather(run.id, Journal(folder / "operations"), Runs(folder / "runbooks"), ())
        assert report.outcome == "done"
        written = page(report)
        assert written.count('class="memory"') == 8
        for words in ("stalled in capture", "262144", "--speculative-num-steps 3", "the night is over"):
            assert words in written, words


async def test_a_kill_by_hand_while_a_person_is_waited_for_counts(tmp_path: Path) -> None:
    async with simulate("healthy", speed=2000) as sim:
        home = tmp_path / "anna"
        home.mkdir()
        steps = '{ manual = "call the owner" }, { do = "kill" }'
        (home / "specdash.toml").write_text(f"schema = 1\n[runbooks.stop]\nsteps = [{steps}]\n")
        anna = Operator(sim, home)
        first = await anna.run("runbook", "stop", "--yes")
        assert first.code == 1, first.err
        assert (await anna.run("kill", "--yes")).code == 0
        second = await anna.run("runbook", "stop", "--yes", "--tick", "--json")
        assert second.code == 0, second.err
        told = second.document["steps"][1]["evidence"][0]["text"]
        assert told == "no server runs here" or "not by this runbook" in told


async def test_exit_codes_say_what_became_of_it(tmp_path: Path) -> None:
    async with simulate("healthy", speed=2000) as sim:
        home = tmp_path / "anna"
        home.mkdir()
        bad = '{ check = "servers == 7" }, { run = ["touch", "/tmp/never"] }'
        (home / "specdash.toml").write_text(f"schema = 1\n[runbooks.bad]\nsteps = [{bad}]\n")
        anna = Operator(sim, home)
        for arguments, code, words in (
            (("nights", "--yes"), 2, "there is no runbook nights (did you mean night-watch?)"),
            (("bad", "--watch"), 4, "--watch never does"),
            (("restart-and-verify",), 4, "--yes"),
            (("bad", "--retry"), 1, "no run of bad has stopped here"),
            (("bad", "--yes"), 1, "--retry, --skip or --abort goes on"),
            (("bad", "--yes"), 1, "this goes on: bad: failed at step 1 of 2"),
            (("bad", "--abort", "--yes"), 1, "this goes on"),
            (("night-watch", "--watch"), 0, "the server is ready"),
            (("night-watch", "--watch", "--port", "1"), 3, ""),
        ):
            said = await anna.run("runbook", *arguments)
            assert said.code == code, (arguments, said)
            assert words in said.err, (arguments, said)
