"""The main process of the simulated server: plays the script, then serves.

Started as ``python3 -m sglang.launch_server …`` on the simulated host, by the simulation, by the operator
or by a restart: whatever the command line and the model's files say then holds.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from specdash.sim.adapter import Clock, read_json
from specdash.sim.engine.acts import Setting
from specdash.sim.engine.crew import Crew
from specdash.sim.engine.log import Log
from specdash.sim.engine.picture import Picture
from specdash.sim.engine.play import Player
from specdash.sim.engine.script import script
from specdash.sim.engine.service import Service
from specdash.sim.engine.sizes import TARGET_MIB
from specdash.sim.scenarios import SCENARIOS, Course


def flag(argv: Sequence[str], *names: str, default: str = "") -> str:
    """The value of the last of these flags, in either form."""
    found = default
    for index, argument in enumerate(argv):
        name, equals, value = argument.partition("=")
        if name in names:
            found = value if equals else argv[index + 1] if index + 1 < len(argv) else ""
    return found


def setting(argv: Sequence[str], environ: Mapping[str, str]) -> Setting:
    """What this start is asked to be."""
    draft = None
    if flag(argv, "--speculative-algorithm"):
        draft = flag(argv, "--speculative-draft-model-path", "--speculative-draft-model") or None
    steps = int(flag(argv, "--speculative-num-steps", default="3")) if draft else 0
    model = flag(argv, "--model-path", "--model", default="/models/target")
    context = flag(argv, "--context-length")
    return Setting(
        model=model,
        draft=draft,
        port=int(flag(argv, "--port", default="30000")),
        tp=int(flag(argv, "--tp", "--tp-size", "--tensor-parallel-size", default="1")),
        steps=steps,
        draft_tokens=int(flag(argv, "--speculative-num-draft-tokens", default=str(steps + 1))),
        served=flag(argv, "--served-model-name", default=model),
        pid=os.getpid(),
        target_context=int(context) if context else _window(model),
        draft_context=_window(draft) if draft else 0,
        mem_fraction=float(flag(argv, "--mem-fraction-static", default="0.79")),
        override=environ.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() in ("1", "true"),
    )


def _window(model: str) -> int:
    """``max_position_embeddings`` of a model's config.json, as the file says it now."""
    return int(read_json(Path(model) / "config.json")["max_position_embeddings"])


def _course(folder: Path) -> Course:
    """Which start of the scenario this is: the n-th server of this host takes the n-th course."""
    scenario = SCENARIOS[read_json(folder / "host.json")["scenario"]]
    for number in range(1000):
        try:
            os.close(os.open(folder / "starts" / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            continue
        return scenario.starts[min(number, len(scenario.starts) - 1)]
    return scenario.starts[-1]


def main() -> None:
    """Run the server until it ends or is ended."""
    folder = Path(os.environ["SPECDASH_SIM"])
    try:
        wanted = setting(sys.argv[1:], os.environ)
    except FileNotFoundError as error:
        text = "Repo id must be in the form 'repo_name' or 'namespace/repo_name'"
        sys.exit(f"OSError: {text}: {str(Path(str(error.filename)).parent)!r}.")
    course = _course(folder)
    asyncio.run(_live(folder, wanted, course))


async def _live(folder: Path, wanted: Setting, course: Course) -> None:
    clock = Clock(folder)
    about = read_json(folder / "host.json")
    clock.turn(float(about["speed"]))
    born = clock.now() - course.age_s
    log = Log(clock, wanted.tp)
    uvm = str(folder / "dev" / "nvidia-uvm")
    crew = Crew(wanted.tp, uvm, course.held_gpu, held_apart=course.held_apart)
    read_mib = TARGET_MIB / (course.shards * course.shard_s)
    picture = Picture(folder, clock, crew, born, found=course.age_s > 0, read_mib=read_mib)
    player = Player(folder, clock, log, crew, picture, course, born)
    guard = asyncio.get_running_loop().create_task(player.guard(int(about["init"])))
    await player.play(script(course, wanted))
    if player.opened:
        await Service(player, wanted, course, float(about["serving_speed"])).run()
    await guard  # a hang: nothing more will ever happen here
