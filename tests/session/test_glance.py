"""One look waits for what was asked, and not for ever."""

from __future__ import annotations

import msgspec

from specdash.monitor.frames import AnyFrame, Gpus, Link, Machine
from specdash.monitor.polling import HEALTH
from specdash.session.glance import CONNECT_S, LOOK_S, PATIENCE_S, Glance
from tests.monitor.frames_of import hello, http, log, picture, processes, server

SEEN: tuple[AnyFrame, ...] = (
    hello(1.0),
    Link(at=1.0, state="live"),
    Gpus(at=1.0, error="no driver"),
    Machine(at=1.0),
    processes(1.0, *server()),
    log(1.0, "line\n", start_=True),
)


def _done(*more: AnyFrame, after: float) -> bool:
    state = picture(*SEEN, *more)
    glance = Glance()
    glance.judge(state, 100.0)
    return glance.judge(state, 100.0 + after).done


def test_two_samples_are_enough_where_nothing_listens() -> None:
    refused = http(2.0, "connect", error="refused")
    assert not _done(refused, after=LOOK_S - 0.5)
    assert _done(refused, after=LOOK_S)


def test_an_open_port_is_waited_for_until_it_answers_or_has_hung() -> None:
    assert not _done(http(2.0, "connect"), after=LOOK_S), "it accepts, and has not answered yet"
    assert _done(http(2.0, "connect"), http(3.0, HEALTH, status=200), after=LOOK_S)
    assert _done(http(2.0, "connect"), http(5.0, HEALTH, error="timeout"), after=LOOK_S)
    assert _done(http(2.0, "connect"), after=PATIENCE_S), "but not for ever"


def test_a_lost_link_ends_the_look_with_its_reason() -> None:
    state = picture(*SEEN, Link(at=2.0, state="lost", reason="box: it broke"))
    assert Glance().judge(state, 100.0).refused == "box: it broke"


def test_who_does_not_get_through_says_how_far_he_came() -> None:
    glance = Glance()
    slow = picture(Link(at=1.0, state="connecting", reason="its sshd answers; agreeing on encryption"))
    glance.judge(slow, 100.0)
    told = glance.judge(slow, 100.0 + CONNECT_S).refused
    assert told == f"no answer within {CONNECT_S:.0f} s (so far: its sshd answers; agreeing on encryption)"


def test_a_stopped_process_is_looked_at_until_it_is_called_a_stall_or_goes_on() -> None:
    seen = (http(2.0, "connect"), http(2.0, HEALTH, status=200), processes(3.0, *server("SST")))
    assert not _done(*seen, after=LOOK_S + 1)
    assert _done(*seen, processes(8.5, *server("SST")), after=LOOK_S + 1)
    assert _done(*seen, processes(4.0, *server()), after=LOOK_S + 1)


def test_a_log_that_was_there_is_read_to_its_end_first() -> None:
    half = msgspec.structs.replace(log(2.0, "line\n", start_=True), size=10)
    refused = http(2.0, "connect", error="refused")
    assert not _done(refused, half, after=LOOK_S)
    assert _done(refused, half, log(2.5, "more\n", 5), after=LOOK_S)
    assert _done(refused, half, after=PATIENCE_S), "but not for ever"
