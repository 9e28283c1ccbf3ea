"""The files of plans and runs: damaged, torn, of another version, or not to be kept at all."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from specdash.errors import SpecdashError
from specdash.operations import clean, stop
from specdash.operations.journal import Journal, LineFile
from specdash.operations.runner import Runner
from tests.operations.fakehost import FakeHost, sglang


def test_a_line_for_which_the_disk_has_only_half_the_room_is_not_taken_for_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    file = LineFile(path, {"plan": "kill"}, "busy", 9)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, hard))
    try:
        with pytest.raises(SpecdashError, match="is full: make room there"):
            file.write({"step": 0, "is": "active"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        file.close()
    again = LineFile(path, {"plan": "another"}, "busy", 9)
    again.write({"step": 1})
    again.write({"step": 2})
    again.close()
    first, _torn, *rest = path.read_text().splitlines()
    assert [json.loads(line) for line in (first, *rest)] == [{"plan": "kill"}, {"step": 1}, {"step": 2}]


@pytest.mark.parametrize("damage", [b"", b"{", b"\x00\x00", b'{"plan": 5}\n'])
async def test_a_damaged_journal_file_is_passed_over(damage: bytes, host: FakeHost, journal: Journal) -> None:
    journal.folder.mkdir(parents=True)
    (journal.folder / "kill-x.jsonl").write_bytes(damage)
    assert list(journal.all()) == []
    assert journal.unfinished(host.target) == []


async def test_a_line_that_was_cut_in_the_middle_loses_only_itself(host: FakeHost, journal: Journal) -> None:
    plan = await stop.prepare(host, sglang(host))
    record = journal.begin(plan)
    record.step(plan.advance(0, state="active", started=1.0), 0)
    record.close()
    path = journal.folder / f"{plan.id}.jsonl"
    path.write_bytes(path.read_bytes() + b'{"step": 0, "is": {"state": "do')
    kept = journal.read(plan.id)
    assert kept is not None
    assert kept.plan.steps[0].state == "active"


@pytest.mark.parametrize(
    "line",
    [
        b'{"step":0,"is":{"state":{}',
        b'{"step":0,"is":{"state":"some later word"}}',
        b"[1]",
        b'{"step":"x","is":{}}',
    ],
    ids=["cut in the middle", "of another version", "no object", "no number"],
)
async def test_a_line_of_a_journal_that_is_not_understood_loses_no_plan(
    host: FakeHost, journal: Journal, line: bytes
) -> None:
    plan = await clean.prepare(host)
    record = journal.begin(plan)
    plan = plan.advance(0, state="active", started=1.0)
    record.step(plan, 0)
    with record.path.open("ab") as file:
        file.write(line + b"\n")
    record.step(plan.advance(0, evidence="later"), 0)
    record.close()
    [again] = journal.unfinished(host.target)
    assert (again.steps[0].state, again.steps[0].evidence) == ("active", "later")


def test_a_plan_for_which_there_is_no_room_leaves_no_file_that_looks_like_one(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda _to, _data: 7)
    with pytest.raises(SpecdashError) as caught:
        LineFile(journal.folder / "a.jsonl", {"plan": 1}, "busy", 3)
    words = f"what is done cannot be kept: the disk of {journal.folder} is full: make room there"
    assert str(caught.value) == words
    assert list(journal.folder.iterdir()) == []


async def test_where_no_journal_can_be_kept_nothing_is_begun_and_it_is_said_why(
    host: FakeHost, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    runner = Runner(host, Journal(tmp_path / "state" / "operations"), clock=host.clock)
    with pytest.raises(SpecdashError, match="what is done cannot be kept"):
        await runner.run(await stop.prepare(host, sglang(host)), lambda _: None)
    assert host.effects == []
