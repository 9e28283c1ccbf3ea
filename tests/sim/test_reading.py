"""The simulated log, read by the same grammar that reads a real server's."""

from __future__ import annotations

import pytest

from specdash.engines.loader import grammars
from specdash.monitor.reader import begin, finish, read
from specdash.monitor.reading import LogReading
from specdash.sim.engine import log as logs
from specdash.sim.engine.acts import Bar, Say, Setting
from specdash.sim.engine.script import script
from specdash.sim.scenarios import SCENARIOS

BORN = 1_795_960_000.0


class Paper(logs.Log):
    """A log that is kept instead of written."""

    def __init__(self, tp: int) -> None:
        self._tp = tp
        self.text = ""

    def _write(self, fd: int, text: str) -> None:
        self.text += text


def reading(name: str, *, launch: int = 0) -> LogReading:
    scenario = SCENARIOS[name]
    setting = Setting(
        "/models/target", "/models/draft", 30000, 8, scenario.steps, 4, "target-1t", 4242,
        draft_context=scenario.draft_context,
    )  # fmt: skip
    paper = Paper(setting.tp)
    found = begin(grammars())
    for act in script(scenario.starts[launch], setting):
        before = len(paper.text)
        match act:
            case Say(at=at, text=text, rank=rank, bare=bare):
                paper.bare(BORN + at, text) if bare else paper.say(BORN + at, text, rank)
            case Bar(text=text):
                paper.bar(text)
        found = read(found, paper.text[before:].encode(), BORN + act.at)
    return finish(found) if paper.text.endswith("\n") else found


def test_a_healthy_log_is_understood_without_being_told_the_engine() -> None:
    found = reading("healthy")
    assert (found.engine, found.known_format) == ("sglang", True)
    assert found.ranks_seen == tuple(f"TP{n}" for n in range(8))
    assert (found.parallel, found.speculation) == ("TP8", "EAGLE3 3 steps")
    assert (found.port, found.served_name) == (30000, "target-1t")
    assert found.crash_line is None
    begun = {(role, phase, part) for role, phase, part, _ in found.items}
    assert begun >= {
        *((role, phase, None) for role in ("target", "draft") for phase in ("weights", "kv_cache")),
        *(("target", "capture", part) for part in ("prefill", "verify")),
        *(("draft", "capture", part) for part in ("prefill", "decode")),
    }
    still_open = [key for key, item in found.items.items() if item.end_line is None and key[1] == "capture"]
    assert still_open == []


@pytest.mark.parametrize("name", ["zombie", "zombie-live"])
def test_the_hang_is_read_as_a_capture_that_stands_at_six_of_twenty_three(name: str) -> None:
    found = reading(name)
    assert (found.phase, found.role, found.state) == ("capture", "target", "capturing")
    assert found.progress is not None
    assert (found.progress.done, found.progress.total) == (6, 23)


@pytest.mark.parametrize(("name", "phase"), [("mismatch", "weights"), ("oom", "capture")])
def test_a_crash_is_read_as_one(name: str, phase: str) -> None:
    found = reading(name)
    assert found.state == "crashed"
    assert found.crash_line is not None
    assert found.phase == phase
