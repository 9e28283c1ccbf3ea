"""A runbook on a plain terminal: every step and outcome is a line that can be read aloud, once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specdash.alerting.herald import Herald
from specdash.commands import conducting, runbook
from specdash.commands.acting import Scene
from specdash.commands.conducting import Teller
from specdash.errors import SpecdashError
from specdash.monitor.state import HostState
from specdash.operations.which import Wanted
from specdash.profile.document import Profile, RunbookStep
from specdash.runbooks.book import Book
from specdash.runbooks.runs import Run, Runs, new_run

BOOK = Book(
    name="night",
    steps=(RunbookStep(do="check"), RunbookStep(check="servers == 1"), RunbookStep(notify="over")),
)


def heard(capsys: pytest.CaptureFixture[str], teller: Teller, run: Run) -> list[str]:
    teller.tell(run)
    teller.tell(run)
    return capsys.readouterr().err.splitlines()


def test_each_step_is_told_in_words_and_its_evidence_once(capsys: pytest.CaptureFixture[str]) -> None:
    run = new_run(BOOK, "box", host="box", server=None, now=1.0)
    teller = Teller(run)
    assert heard(capsys, teller, run) == []
    run = run.advance(0, state="active", started=10.0)
    assert heard(capsys, teller, run) == ["▸ 1/3 preflight: begins"]
    run = run.saw(0, "draft: too short", 12.0, state="failed", ended=12.0)
    assert heard(capsys, teller, run) == ["✖ 1/3 preflight: failed", "    draft: too short"]
    run = run.saw(0, "tried again", 13.0, state="pending", started=None, ended=None)
    run = run.advance(0, state="active", started=14.0)
    assert heard(capsys, teller, run) == ["▸ 1/3 preflight: begins"]
    run = run.saw(0, "9 fine", 15.0, state="done", ended=15.0)
    assert heard(capsys, teller, run) == ["✓ 1/3 preflight: done", "    tried again", "    9 fine"]
    run = run.advance(1, state="active", started=15.0)
    run = run.saw(1, "skipped by hand", 16.0, state="skipped", ended=16.0)
    assert heard(capsys, teller, run) == []  # it was never told to begin
    later = Teller(run)
    run = run.advance(2, state="active", started=17.0)
    assert heard(capsys, later, run) == ["▸ 3/3 say over: begins"], "what was told before is not told again"


def scene_of(given: dict[str, Any]) -> Scene:
    session = SimpleNamespace(target="box", state=HostState(target="box"))
    whole = {"session": session, "state": session.state, "given": given, "profile": Profile()}
    return cast(Scene, SimpleNamespace(**whole, wanted=Wanted.of(given.get("server"))))


async def test_the_procedure_alone_is_a_document_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    given = {"json": True, "dry_run": True, "server": None}

    @contextlib.asynccontextmanager
    async def scene(target: str, given: dict[str, Any], *, outside: bool) -> AsyncIterator[Scene]:
        yield scene_of(given)

    monkeypatch.setattr(runbook, "scene", scene)
    assert await runbook._run("box", BOOK, None, given) == 0
    document = json.loads(capsys.readouterr().out)
    assert [step["state"] for step in document["steps"]] == ["pending"] * 3


async def test_whoever_is_told_of_a_run_is_told_before_it_ends_by_a_failed_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    class Slow(Herald):
        """Has a message on its way."""

        def close(self) -> None:
            sent.append("over")

    async def perform(*_: Any) -> Run:
        raise conducting.Stopped("step 3 has failed")

    monkeypatch.setattr(conducting, "Herald", Slow)
    monkeypatch.setattr(conducting, "conductor_for", lambda *_: SimpleNamespace(run=None))
    monkeypatch.setattr(conducting, "perform", perform)
    run = new_run(BOOK, "box", host="box", server=None, now=1.0)
    with pytest.raises(conducting.Stopped):
        await runbook._carry_out(scene_of({"json": False}), run, Runs(tmp_path), None)
    assert sent == ["over"]


@pytest.mark.parametrize("decision", [None, "retry", "abort"])
def test_a_run_that_was_cut_off_does_not_go_on_with_a_server_that_was_not_named(
    tmp_path: Path, decision: str | None
) -> None:
    runs = Runs(tmp_path)
    old = new_run(BOOK, "box", host="box", server="sglang:30000", now=1.0).advance(
        0, state="active", started=2.0
    )
    runs.begin(old).close()

    def taken_up(server: str | None) -> Run:
        return runbook._taken_up(scene_of({"server": server}), BOOK, runs, decision)

    assert taken_up(None).id == taken_up("sglang:30000").id == old.id
    if decision == "abort":
        assert taken_up("vllm:8000").id == old.id
    else:
        with pytest.raises(
            SpecdashError, match="night has stopped here for server sglang:30000, not for vllm:8000"
        ):
            taken_up("vllm:8000")
