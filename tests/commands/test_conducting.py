"""A runbook on a plain terminal: every step and outcome is a line that can be read aloud, once."""

from __future__ import annotations

import pytest

from specdash.commands.conducting import Teller
from specdash.profile.document import RunbookStep
from specdash.runbooks.book import Book
from specdash.runbooks.runs import Run, new_run

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
