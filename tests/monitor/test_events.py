"""What has happened, as a list: each thing once, in order, in words that stand alone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from specdash.monitor.frames import Link
from specdash.monitor.memory import Memory
from specdash.monitor.observe import acknowledge, snooze
from specdash.monitor.state import Alert, Event
from tests.monitor.frames_of import hello, log, only_server, processes, run, server, tick

START = (
    "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"
    "[2026-11-02 01:00:05 TP0] Load weight begin. avail mem=90 GB\n"
    "[2026-11-02 01:00:05 TP1] Load weight begin. avail mem=90 GB\n"
    "[2026-11-02 01:00:09 TP0] Load weight end. type=L, avail mem=20 GB.\n"
    "[2026-11-02 01:00:09 TP1] Load weight end. type=L, avail mem=20 GB.\n"
    "[2026-11-02 01:00:10 TP0] Capture cuda graph begin. This can take up to several minutes.\n"
    "[2026-11-02 01:00:10 TP1] Capture cuda graph begin. This can take up to several minutes.\n"
    "Capturing batches (bs=24 avail_mem=4.9 GB):  26%|##  | 6/23 [00:20<01:00, 1.2it/s]"
)
MOVES = "\rCapturing batches (bs=16 avail_mem=4.8 GB):  30%|###  | 7/23 [02:10<05:00, 1.2it/s]"


def live(at: float) -> Link:
    return Link(at=at, state="live")


def lost(at: float, reason: str = "no answer for 10 s") -> Link:
    return Link(at=at, state="lost", reason=reason)


def trying(at: float) -> Link:
    return Link(at=at, state="connecting")


def begun() -> Memory:
    return run(
        live(9.0),
        hello(9.0),
        processes(10.0, *server()),
        log(11.0, START, start_=True, mtime=11.0),
        tick(12.0),
    )


def stalled() -> Memory:
    return run(*(processes(10.0 + t, *server()) for t in range(2, 140, 2)), memory=begun())


def told(memory: Memory) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in memory.picture.events]


def last(memory: Memory) -> Event:
    return memory.picture.events[-1]


def test_a_stall_and_its_end_are_two_events_and_say_how_long_it_took() -> None:
    memory = run(log(151.0, MOVES, 9999), tick(152.0), memory=stalled())
    assert [kind for kind, _ in told(memory)] == ["link", "process", "alert", "recovery"]
    alarm, recovery = memory.picture.events[-2:]
    assert alarm.text.startswith("sglang:30000 stalled in graphs: no progress for 2:0")
    assert alarm.severity == "error"
    assert recovery.text.startswith("sglang:30000 moved again after 2:")
    assert alarm.server == recovery.server == only_server(memory).key


def test_what_stays_as_it_is_makes_no_event_and_keeps_the_very_list() -> None:
    memory = stalled()
    later = run(tick(160.0), processes(161.0, *server()), memory=memory)
    assert later.picture.events is memory.picture.events


def test_acknowledging_an_alert_takes_nothing_from_the_list() -> None:
    memory = stalled()
    seen = acknowledge(memory, memory.picture.alerts[-1].key)
    assert seen.picture.alerts == ()
    assert told(seen) == told(memory)


@pytest.mark.parametrize("put_away", [acknowledge, snooze])
def test_old_news_of_a_server_comes_up_no_more_when_its_alarm_is_put_away(
    put_away: Callable[[Memory, str], Memory],
) -> None:
    memory = stalled()
    alarm = memory.alerts[-1]
    news = Alert(key=f"{alarm.key.partition('/')[0]}/ready/1", at=1.0, severity="info", text="it is ready")
    other = msgspec.structs.replace(news, key="server:9:9/ready/1")
    both = msgspec.structs.replace(memory, alerts=(news, other, *memory.alerts))
    assert put_away(both, alarm.key).picture.alerts == (other,)
    assert put_away(both, other.key).picture.alerts[-1] == alarm


def test_a_process_that_has_just_started_is_new_and_an_old_one_was_found() -> None:
    assert ("process", "sglang:30000: new process 100") in told(begun())
    old = run(live(9.0), hello(4000.0), processes(4001.0, *server()))
    assert last(old).text == "sglang:30000: process 100 was found, up 1:06:41"


def test_the_link_that_breaks_and_comes_back_says_after_how_long() -> None:
    memory = run(
        lost(20.0), trying(21.0), lost(22.0), trying(23.0), lost(24.0, "refused"), trying(30.0), live(61.0),
        memory=begun(),
    )  # fmt: skip
    assert [text for kind, text in told(memory) if kind == "link"] == [
        "connected",
        "connection lost: no answer for 10 s",
        "still not connected: refused",
        "connected again; nothing was seen for 50 s",
    ]


def test_a_lost_link_is_an_alert_until_it_is_back_and_then_that_is_one() -> None:
    away = run(lost(20.0, "gpubox: no answer for 10 s"), trying(21.0), lost(22.0), memory=begun())
    assert [(alert.severity, alert.text) for alert in away.picture.alerts] == [
        ("warning", "connection lost: no answer for 10 s")
    ]
    assert away.picture.link.state == "lost"
    assert (away.picture.link.since, away.picture.link.heard_at) == (20.0, 11.0)
    back = run(live(61.0), memory=away)
    assert [(alert.severity, alert.text) for alert in back.picture.alerts] == [
        ("info", "connected again; nothing was seen for 50 s")
    ]
    assert back.picture.link.heard_at is None
    assert [kind for kind, _ in told(back) if kind == "alert"] == [], "the list tells it as the link's"


def test_an_attempt_to_come_back_changes_nothing_that_is_shown() -> None:
    away = run(lost(20.0), memory=begun())
    trying_now = run(trying(22.0), tick(30.0), memory=away)
    assert trying_now.picture.old
    assert (trying_now.picture.link.state, trying_now.picture.link.since) == ("lost", 20.0)
    assert trying_now.picture.link.reason == "no answer for 10 s"
    assert trying_now.picture.link.retry_at is None


def test_a_host_that_refuses_us_after_it_was_known_is_an_error_and_what_was_seen_is_old() -> None:
    link = Link(at=30.0, state="refused", reason="the host key has changed")
    memory = run(lost(20.0), trying(21.0), link, memory=begun())
    assert [(alert.severity, alert.text) for alert in memory.picture.alerts] == [
        ("error", "connection lost, and not tried again: the host key has changed")
    ]
    assert memory.picture.old


def test_a_connection_that_is_back_at_once_needs_no_person() -> None:
    back = run(lost(13.0), live(14.0), memory=begun())
    assert back.picture.alerts == ()
    assert ("link", "connected again; nothing was seen for 3 s") in told(back)


def test_a_short_silence_of_the_link_is_no_event() -> None:
    memory = begun()
    stale = run(Link(at=20.0, state="stale"), live(22.0), memory=memory)
    assert told(stale) == told(memory)


def test_another_boot_is_said() -> None:
    memory = run(lost(20.0), live(90.0), hello(90.0, boot="boot-2"), memory=begun())
    assert last(memory).text == "the host has restarted: every process is another one"


def test_a_snoozed_alert_comes_back_after_its_time_if_it_still_holds() -> None:
    memory = stalled()
    at, key = memory.picture.now, memory.picture.alerts[-1].key
    waiting = snooze(memory, key, 600)
    assert waiting.picture.alerts == ()
    waiting = run(tick(at + 599), memory=waiting)
    assert waiting.picture.alerts == ()
    back = run(tick(at + 600), memory=waiting)
    assert [alert.key for alert in back.picture.alerts] == [key]
    assert acknowledge(back, key).picture.alerts == ()


def test_a_snoozed_alarm_that_is_over_does_not_come_back() -> None:
    memory = stalled()
    at, key = memory.picture.now, memory.picture.alerts[-1].key
    moved = run(log(at + 1, MOVES, 9999), tick(at + 700), memory=snooze(memory, key, 600))
    assert key not in [alert.key for alert in moved.picture.alerts]


def test_only_the_last_events_are_remembered() -> None:
    frames = [link for at in range(20, 1020, 2) for link in (lost(float(at)), live(at + 1.0))]
    assert len(run(*frames, memory=begun()).picture.events) == 200
