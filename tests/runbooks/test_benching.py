"""The benchmark of a runbook: measured as any other, noted in case it is cut off, and never twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specdash.bench.events import AnyEvent, Begin, End
from specdash.measuring.leftover import Leftovers
from specdash.operations.journal import Journal
from specdash.profile.document import Benchmark, Profile, RunbookStep
from specdash.runbooks import benching
from specdash.runbooks.benching import OnHost
from specdash.runbooks.book import Book
from specdash.runbooks.doing import Doing, Outcome
from specdash.runbooks.runs import new_run
from tests.measuring.scripted import Scripted, good_run
from tests.operations.fakehost import sglang
from tests.runbooks.scene import Anna
from tests.tui.actors import HostSource
from tests.tui.test_measuring import BenchHost

OWN = Benchmark(command=("python3", "/tmp/own.py"), tok_s=r"rate: ([\d.]+)", repeat=2)
SAID: list[AnyEvent] = [Begin(at=1_795_990_000.0), End(t=9, exit=0, tok_s=(83.5,))]


class Room:
    """A host with a server, and a runbook with one step that measures it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(folder))
        self.host, self.anna, self.folder = BenchHost(), Anna(), folder
        sglang(self.host)
        self.leftovers: list[Leftovers | None] = []
        self._patch = monkeypatch
        step = RunbookStep(bench="own")
        self.run = new_run(
            Book(name="night", steps=(step,)), self.host.target, host="box", server=None, now=1.0
        )

    async def measure(
        self, *runs: Sequence[AnyEvent], described: Benchmark = OWN
    ) -> tuple[Outcome, Scripted]:
        generator = Scripted(*runs)

        def made(ground: object, server: str | None = None, leftovers: Leftovers | None = None) -> Scripted:
            self.leftovers.append(leftovers)
            return generator

        self._patch.setattr(benching, "HostGenerator", made)
        profile = Profile(schema=1, benchmarks={"own": described})
        operations = HostSource(self.host, self.folder, profile=profile).operations
        assert operations is not None
        doing = Doing(
            operations=operations,
            acts=operations.acts,
            journal=Journal(self.folder / "operations"),
            clock=self.host.clock,
            person=self.anna,
            bench=None,
            run=self.run,
            index=0,
            say=lambda words: None,
            keep=lambda **changed: None,
        )
        return await OnHost(operations, print).measure(doing, "own"), generator


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    return Room(tmp_path, monkeypatch)


def kept() -> list[Any]:
    from specdash.history.runs import Runs
    from specdash.session.lessons import place

    runs = Runs(place())
    try:
        return list(runs.all())
    finally:
        runs.close()


async def test_a_command_of_ones_own_is_kept_with_its_beginning_and_what_was_seen_of_the_cards(
    room: Room,
) -> None:
    outcome, generator = await room.measure(SAID, SAID)
    assert (outcome.state, generator.commands) == ("done", [OWN.command] * 2)
    assert [run.at for run in kept()] == [1_795_990_000.0] * 2, "when it began, not when it ended"
    assert [run.tok_s for run in kept()] == [83.5, 83.5]
    assert all(run.during.samples for run in kept()), "a throttled card would not count"


@pytest.mark.parametrize("described", [OWN, Benchmark(requests=4, output=100, repeat=2)])
async def test_what_was_kept_before_a_cut_is_not_measured_again(room: Room, described: Benchmark) -> None:
    one = SAID if described.command else good_run()
    with pytest.raises(IndexError):  # the program ends behind the first run
        await room.measure(one, described=described)
    outcome, generator = await room.measure(one, described=described)
    assert len(outcome.seen) == 2
    assert len(generator.commands) + len(generator.loads) == 1
    outcome, generator = await room.measure(described=described)
    assert (outcome.state, len(room.anna.plans)) == ("done", 2), "nobody is asked about nothing"


@pytest.mark.parametrize("described", [OWN, Benchmark(requests=4, output=100, repeat=2)])
async def test_a_load_that_was_cut_off_is_known_to_whoever_measures_next(
    room: Room, described: Benchmark
) -> None:
    folder = room.folder / "specdash" / "benches"
    folder.mkdir(parents=True)
    (folder / "old-run.json").write_text(json.dumps({"target": room.host.target, "pid": 2**22 + 1}))
    one = SAID if described.command else good_run()
    await room.measure(one, one, described=described)
    (left,) = room.leftovers
    assert left is not None
    assert list(left.runs()) == ["old-run"]
    assert "was cut off here" in room.anna.plans[0].warnings[0], "said before anybody agrees"
