"""A server that appends to the log of one before it is not judged by what became of that one.

By the clock of these hosts the stamp 01:00:00 is printed at 4500 and 03:00:00 at 11700, give or take whole
quarters of an hour.
"""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.alerts import about
from specdash.monitor.frames import Link, Log, LogState
from specdash.monitor.memory import Memory
from specdash.monitor.state import Server
from specdash.tui.plain import Narrator
from tests.monitor.frames_of import LOG, hello, http, log, only_server, process, processes, run, server, tick
from tests.monitor.good_start import ARGS, DIST, LOADED, READY

SERVED = ARGS + DIST + LOADED + READY
BYE = "[2026-11-02 02:00:00] SIGTERM received. signum=None frame=None. Draining requests...\n"
OLD = SERVED + BYE
WARNING = "/opt/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: pynvml is deprecated\n"
STAMPED = "[2026-11-02 03:00:02] Ignoring an import error of a tool that is not used\n"
T = 11695.0
"""When the new process began: five seconds before 03:00:00."""


def later(text: str) -> str:
    """The same, printed two hours later."""
    return text.replace("02 01:0", "02 03:0")


def young(text: str = OLD, *, mtime: float) -> Memory:
    """A process that has just begun, and a log that was last written to at ``mtime``."""
    table = [msgspec.structs.replace(one, started=T) for one in server()]
    at = max(T, mtime)
    return run(
        hello(at + 1.0),
        processes(at + 1.1, *table),
        log(at + 1.2, text, start_=True, mtime=mtime),
        http(at + 2.0, "connect", error="refused"),
        processes(at + 2.1, *table),
        tick(at + 3.0),
    )


def told(memory: Memory) -> list[str]:
    return [alert.text for alert in memory.picture.alerts if about(alert.key)]


def marks(seen: Server) -> set[str]:
    """What its rail and its list of steps say of its parts."""
    return {item.mark for item in seen.rail} | {step.mark for step in seen.steps}


def test_a_server_that_has_just_been_started_has_not_stopped_because_the_last_one_did() -> None:
    seen = only_server(young(mtime=T - 800))
    assert (seen.state, seen.milestones, seen.figures.running) == ("starting", (), None)
    assert told(young(mtime=T - 800)) == []


@pytest.mark.parametrize("old", [OLD, SERVED, ARGS + DIST + LOADED], ids=["stopped", "killed", "loading"])
@pytest.mark.parametrize("first", [WARNING, STAMPED], ids=["unstamped", "stamped"])
def test_what_the_last_server_did_is_not_told_of_the_next_that_has_said_nothing_known_yet(
    old: str, first: str
) -> None:
    memory = young(old + first, mtime=T + 7.0)
    seen = only_server(memory)
    assert (seen.state, seen.phase, seen.milestones) == ("starting", "boot", ())
    assert {one.severity for one in seen.diagnoses} <= {"info"}
    assert (marks(seen), told(memory)) == ({"pending"}, [])
    assert all(lamp.says != "yes" for lamp in seen.lamps)


def test_its_own_first_lines_are_read_and_have_the_numbers_of_the_file() -> None:
    before = OLD + WARNING
    memory = young(before, mtime=T + 5.0)
    memory = run(log(T + 12.0, later(ARGS + DIST), len(before), mtime=T + 12.0), memory=memory)
    seen = only_server(memory)
    assert (seen.state, seen.phase) == ("starting", "dist_init")
    assert min(one.line for one in seen.milestones) > before.count("\n")


def test_how_long_its_start_took_is_not_how_long_ago_the_last_one_was_ready() -> None:
    before = SERVED + WARNING
    memory = young(before, mtime=T + 5.0)
    memory = run(
        log(T + 30.0, later(ARGS + DIST + LOADED), len(before)),
        log(T + 145.0, later(READY), len(before) + len(ARGS + DIST + LOADED)),
        memory=memory,
    )
    assert told(memory) == ["sglang:30000 is ready, 2:25 after its start"]


def test_what_was_written_since_it_was_started_is_its_own() -> None:
    stop = later(BYE.replace("02:00:00", "03:00:20"))
    seen = only_server(young(OLD + later(ARGS + DIST) + stop, mtime=T + 25.5))
    assert (seen.state, seen.phase) == ("stopped", "dist_init")


def test_a_log_whose_hours_are_those_of_another_zone_is_its_own_too() -> None:
    elsewhere = later(ARGS + DIST).replace(" 03:00:", " 08:45:")
    assert only_server(young(elsewhere, mtime=T + 12.0)).phase == "dist_init"


def in_pieces(*texts: str, at: float, offset: int = 0, resumed: bool = False) -> list[Log]:
    """A log that was there, as it is read: each piece tells how much there is in all."""
    size, frames = offset + sum(map(len, texts)), []
    for number, text in enumerate(texts):
        frame = log(at, text, offset, start_=number == 0 and not resumed, mtime=at)
        frames.append(msgspec.structs.replace(frame, size=size))
        offset += len(text)
    return frames


def test_what_an_earlier_server_wrote_is_no_news_while_the_log_is_still_being_read() -> None:
    table = [msgspec.structs.replace(one, started=T) for one in server()]
    earlier, own = in_pieces(SERVED, BYE + later(ARGS + DIST), at=T + 12.0)
    refused = http(T + 13.2, "connect", error="refused")
    half = run(hello(T + 13.0), processes(T + 13.1, *table), refused, earlier)
    seen = only_server(half)
    assert (seen.state, half.picture.alerts) == ("starting", ())
    assert next(lamp.says for lamp in seen.lamps if lamp.name == "log") == "waiting"
    assert "its log is being read" in seen.truth
    whole = run(own, tick(T + 14.0), memory=half)
    assert (only_server(whole).state, only_server(whole).phase) == ("starting", "dist_init")
    assert whole.picture.alerts == ()
    done = run(log(T + 145.0, later(LOADED + READY), own.offset + len(own.raw)), memory=whole)
    assert told(done) == ["sglang:30000 is ready, 2:25 after its start"]


def test_a_server_that_was_ready_before_we_came_is_not_told_as_news() -> None:
    table = [msgspec.structs.replace(one, started=1000.0) for one in server()]
    first, last = in_pieces(ARGS + DIST, LOADED + READY, at=5040.0)
    half = run(hello(5041.0), processes(5041.1, *table), first)
    assert only_server(half).state == "unknown"
    whole = run(last, memory=half)
    assert (only_server(whole).state, whole.picture.alerts) == ("ready", ())


def test_who_answers_is_ready_however_much_of_its_log_is_unread() -> None:
    table = [msgspec.structs.replace(one, started=1000.0) for one in server()]
    first, _ = in_pieces(SERVED, BYE, at=5040.0)
    seen = only_server(run(hello(5041.0), processes(5041.1, *table), first, http(5041.5, "/health", 200)))
    assert seen.state == "ready"


def test_a_log_is_read_when_it_is_read_to_where_it_ended_however_fast_it_grows() -> None:
    table = [msgspec.structs.replace(one, started=T) for one in server()]
    first, last = in_pieces(later(ARGS), later(DIST), at=T + 12.0)
    grown = msgspec.structs.replace(last, size=last.size + 1_000_000)
    seen = only_server(run(hello(T + 13.0), processes(T + 13.1, *table), first, grown))
    assert (seen.phase, seen.log and seen.log.behind) == ("dist_init", False)


def away(text: str) -> Memory:
    """The link is lost while a server starts whose log was read so far."""
    table = [msgspec.structs.replace(one, started=4500.0) for one in server()]
    memory = run(hello(4501.0), processes(4501.1, *table), log(4505.0, text, start_=True, mtime=4505.0))
    return run(Link(at=4510.0, state="lost"), memory=memory)


def test_what_came_and_went_while_the_link_was_down_is_no_news_when_it_is_read() -> None:
    table = [msgspec.structs.replace(one, started=4500.0) for one in server()]
    ready, bye = in_pieces(LOADED + READY, BYE, at=8100.5, offset=len(ARGS + DIST), resumed=True)
    memory = run(
        Link(at=8100.9, state="live"), hello(8101.0), processes(8101.1, *table), memory=away(ARGS + DIST)
    )
    half = run(ready, tick(8101.5), memory=memory)
    assert told(half) == []
    whole = run(bye, tick(8102.0), memory=half)
    assert (only_server(whole).state, told(whole)) == ("stopped", []), "its process is still there"
    gone = run(processes(8103.0), tick(8104.0), memory=whole)
    assert told(gone) == ["sglang:30000 has stopped, as it was asked to"]


def test_of_a_server_that_was_replaced_while_the_link_was_down_only_the_new_one_is_told() -> None:
    argv = server()[0].argv
    fresh = msgspec.structs.replace(server()[0], pid=900, start=900, sid=900, started=T, argv=argv)
    memory = away(ARGS + DIST)
    offset = len(ARGS + DIST)
    first, last = in_pieces(LOADED + READY, WARNING, at=T + 7.0, offset=offset, resumed=True)
    memory = run(Link(at=T + 7.9, state="live"), hello(T + 8.0), processes(T + 8.1, fresh), memory=memory)
    half = run(first, tick(T + 8.2), memory=memory)
    whole = run(last, tick(T + 8.4), memory=half)
    for seen in (half, whole):
        new = next(one for one in seen.picture.servers if one.pid == 900)
        assert (new.state, new.milestones, marks(new)) == ("starting", (), {"pending"})
        assert not any("ready" in text for text in told(seen))


def test_why_nothing_is_known_of_a_server_whose_log_is_older_than_it_is_said() -> None:
    table = [msgspec.structs.replace(one, started=T - 3600.0) for one in server()]
    memory = run(
        hello(T),
        processes(T + 0.1, *table),
        log(T + 0.2, OLD, start_=True, mtime=T - 7200.0),
        http(T + 1.0, "connect", error="refused"),
        tick(T + 2.0),
    )
    seen, many = only_server(memory), OLD.count("\n")
    assert seen.state == "unknown"
    assert seen.verdict.reasons[0].signal == "log"
    assert seen.verdict.reasons[0].value == (
        f"{many} lines, all older than this process: none of its own yet"
    )
    assert "no line of its own in its log yet" in seen.truth


def test_a_log_that_cannot_be_read_is_said_of_every_server_that_names_it_and_of_none_once_it_can() -> None:
    table = server()
    other = [process(one.pid + 200, 1 if one.ppid == 1 else 300, *one.argv, sid=300) for one in table]
    other[0] = msgspec.structs.replace(other[0], out=LOG, err=LOG, started=5.0)
    waiting = run(hello(), processes(10.0, *table, *other), tick(11.0))
    lost = run(LogState(at=12.0, path=LOG, error="no such file"), tick(12.5), memory=waiting)
    for one in lost.picture.servers:
        assert one.log is not None
        assert one.log.told.endswith(": no such file")
        assert [lamp.value for lamp in one.lamps if lamp.name == "log"] == ["no such file"]
    found = run(log(13.0, "hello\n", start_=True), tick(13.5), memory=lost)
    assert [one.log.error for one in found.picture.servers if one.log] == [None, None]
    narrator = Narrator()
    heard = [line for one in (waiting, lost, found) for line in narrator.tell(one.picture)]
    assert sum("no such file" in line and ": log " in line for line in heard) == 2
    assert sum("it can be read now" in line for line in heard) == 2
