"""A run as one step of the list: how it stands, and how long it has been worked at."""

from __future__ import annotations

from specdash.profile.document import RunbookStep
from specdash.runbooks.book import Book
from specdash.runbooks.runs import new_run
from specdash.runbooks.telling import as_step, document, shown

BOOK = Book(name="night", steps=(RunbookStep(check="servers == 1"), RunbookStep(notify="over")))


def test_the_time_of_a_run_that_has_stopped_stands_still() -> None:
    run = new_run(BOOK, "box", host="box", server=None, now=1.0)
    assert (as_step(run, lambda _: None).state, as_step(run, lambda _: None).seconds) == ("pending", None)
    active = run.advance(0, state="active", started=10.0)
    assert as_step(active, lambda _: None).seconds is None
    failed = active.saw(0, "2 servers", 14.0, state="failed", ended=14.0)
    step = as_step(failed, lambda _: None)
    assert (step.state, step.seconds) == ("failed", 4.0)
    assert failed.summary() == "night: failed at step 1 of 2, “servers == 1”: 2 servers"
    assert list(shown(failed))[1] == "  1 ✖ failed: servers == 1 — 2 servers"


def test_the_document_says_kind_evidence_and_whether_it_is_over() -> None:
    run = new_run(BOOK, "box", host="box", server=None, now=1.0)
    told = document(run.saw(0, "1 server", 14.0, state="done", started=10.0, ended=14.0))
    assert (told.ok, told.over, told.why) == (False, False, None)
    assert [(step.kind, step.state) for step in told.steps] == [("check", "done"), ("notify", "pending")]
    assert (told.steps[0].evidence[0].at, told.steps[0].evidence[0].text) == (14.0, "1 server")


def test_what_was_skipped_is_not_called_done() -> None:
    run = new_run(BOOK, "box", host="box", server=None, now=1.0)
    half = run.advance(0, state="skipped").advance(1, state="done")
    assert half.summary() == "night: 1 of 2 steps done, 1 skipped"
    assert half.advance(0, state="done").summary() == "night: 2 of 2 steps done"


def test_a_run_about_one_of_several_servers_names_it() -> None:
    run = new_run(BOOK, "box", host="box", server="vllm:8000", now=1.0)
    assert next(iter(shown(run))) == "runbook night on box, vllm:8000"
