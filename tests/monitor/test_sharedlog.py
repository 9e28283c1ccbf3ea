"""A server that appends to the log of one before it is not judged by what became of that one."""

from __future__ import annotations

import msgspec

from specdash.monitor.frames import Log
from specdash.monitor.memory import Memory
from tests.monitor.frames_of import hello, http, log, only_server, processes, run, server, tick
from tests.monitor.good_start import ARGS, DIST, LOADED, READY

BYE = "[2026-11-02 02:00:00] SIGTERM received. signum=None frame=None. Draining requests...\n"
OLD = ARGS + DIST + LOADED + READY + BYE


def young(*, mtime: float) -> Memory:
    """A process that was started at 5000, and a log that was last written to at ``mtime``."""
    table = [msgspec.structs.replace(one, started=5000.0) for one in server()]
    return run(
        hello(5001.0),
        processes(5001.1, *table),
        log(5001.2, OLD, start_=True, mtime=mtime),
        processes(5002.1, *table),
        tick(5003.0),
    )


def test_a_server_that_has_just_been_started_has_not_stopped_because_the_last_one_did() -> None:
    seen = only_server(young(mtime=4200.0))
    assert (seen.state, seen.milestones, seen.figures.running) == ("starting", (), None)
    assert [alert.text for alert in young(mtime=4200.0).picture.alerts] == []


def test_its_own_first_lines_are_read_and_have_the_numbers_of_the_file() -> None:
    memory = run(log(5010.0, ARGS + DIST, len(OLD), mtime=5010.0), memory=young(mtime=4200.0))
    seen = only_server(memory)
    assert (seen.state, seen.phase) == ("starting", "dist_init")
    assert min(one.line for one in seen.milestones) > OLD.count("\n")


def test_what_was_written_since_it_was_started_is_its_own() -> None:
    assert only_server(young(mtime=5000.5)).state == "stopped"


def in_pieces(*texts: str, at: float) -> list[Log]:
    """A log that was there, as it is read: each piece tells how much there is in all."""
    size, offset, frames = sum(map(len, texts)), 0, []
    for text in texts:
        frame = log(at, text, offset, start_=offset == 0, mtime=at)
        frames.append(msgspec.structs.replace(frame, size=size))
        offset += len(text)
    return frames


def test_what_an_earlier_server_wrote_is_no_news_while_the_log_is_still_being_read() -> None:
    table = [msgspec.structs.replace(one, started=5000.0) for one in server()]
    earlier, own = in_pieces(ARGS + DIST + LOADED + READY, BYE + ARGS + DIST, at=5040.0)
    half = run(hello(5041.0), processes(5041.1, *table), http(5041.2, "connect", error="refused"), earlier)
    seen = only_server(half)
    assert (seen.state, half.picture.alerts) == ("starting", ())
    assert next(lamp.says for lamp in seen.lamps if lamp.name == "log") == "waiting"
    assert "its log is being read" in seen.truth
    whole = run(own, tick(5042.0), memory=half)
    assert (only_server(whole).state, only_server(whole).phase) == ("starting", "dist_init")
    assert whole.picture.alerts == ()


def test_a_server_that_was_ready_before_we_came_is_not_told_as_news() -> None:
    table = [msgspec.structs.replace(one, started=1000.0) for one in server()]
    first, last = in_pieces(ARGS + DIST, LOADED + READY, at=5040.0)
    half = run(hello(5041.0), processes(5041.1, *table), first)
    assert only_server(half).state == "unknown"
    whole = run(last, memory=half)
    assert (only_server(whole).state, whole.picture.alerts) == ("ready", ())


def test_who_answers_is_ready_however_much_of_its_log_is_unread() -> None:
    table = [msgspec.structs.replace(one, started=1000.0) for one in server()]
    first, _ = in_pieces(ARGS + DIST + LOADED + READY, BYE, at=5040.0)
    seen = only_server(run(hello(5041.0), processes(5041.1, *table), first, http(5041.5, "/health", 200)))
    assert seen.state == "ready"
