import msgspec
import pytest

from specdash.monitor import frames, samples
from specdash.remote.clock import HostClock
from specdash.remote.pulse import Pulse

START, WALL = 100.0, 1e9


def words(pulse: Pulse, first: int, last: int) -> list[str]:
    return [pulse.second(START + n, WALL + n).word for n in range(first, last + 1)]


def test_three_seconds_of_silence_are_stale_and_ten_are_dead() -> None:
    assert words(Pulse(START, WALL), 1, 10) == ["fine"] * 2 + ["stale"] * 7 + ["dead"]


def test_bytes_make_a_stale_link_fine_again() -> None:
    pulse = Pulse(START, WALL)
    words(pulse, 1, 5)
    pulse.heard(START + 5.5)
    assert words(pulse, 6, 8) == ["fine"] * 3


def test_the_agent_gets_longer_to_say_its_first_word() -> None:
    assert words(Pulse(START, WALL, grace=10.0), 1, 20) == ["fine"] * 12 + ["stale"] * 7 + ["dead"]


def test_a_ping_is_due_every_five_seconds_and_its_answer_is_timed() -> None:
    pulse = Pulse(START, WALL)
    due = []
    for n in range(1, 13):
        pulse.heard(START + n)
        if pulse.second(START + n, WALL + n).ping:
            due.append(n)
            number = pulse.ping(START + n)
            assert round(pulse.pong(number, START + n + 0.02) or 0) == 20
    assert due == [1, 6, 11]


def test_a_pong_that_answers_no_ping_is_not_timed() -> None:
    assert Pulse(START, WALL).pong(7, START) is None


def test_after_sleep_the_host_has_two_seconds_to_answer() -> None:
    pulse = Pulse(START, WALL)
    woke = pulse.second(START + 1, WALL + 2001)
    assert (woke.word, woke.ping, woke.slept_s) == ("stale", True, 2000.0)
    assert pulse.second(START + 2, WALL + 2002).word == "stale"
    assert pulse.second(START + 3, WALL + 2003).word == "dead"


def test_after_sleep_an_answer_keeps_the_connection() -> None:
    pulse = Pulse(START, WALL)
    pulse.second(START + 1, WALL + 2001)
    pulse.heard(START + 1.5)
    assert [pulse.second(START + n, WALL + 2000 + n).word for n in (2, 3)] == ["fine"] * 2


def test_a_stopped_process_does_not_take_its_own_absence_for_the_hosts() -> None:
    pulse = Pulse(START, WALL)
    assert pulse.second(START + 60, WALL + 60).word == "stale"


def test_a_wall_clock_set_back_is_no_sleep() -> None:
    assert Pulse(START, WALL).second(START + 1, WALL - 3600).word == "fine"


def test_the_hosts_clock_is_carried_on_by_ours_and_over_a_sleep() -> None:
    clock = HostClock(500.0, START, WALL)
    clock.take(frames.Beat(at=600.0, n=1), START + 10, WALL + 10)
    assert clock.now(START + 12.5) == 602.5
    clock.skip(60)
    assert clock.now(START + 12.5) == 662.5


def _hello(at: float, boot: str = "b", *, simulated: bool = False) -> frames.Hello:
    who = {"proto": 1, "specdash": "0", "host": "h", "pid": 1, "uid": 0, "user": "u", "python": "3"}
    return msgspec.convert(
        {"t": "hello", "at": at, "boot": boot, "simulated": simulated, **who}, frames.Hello
    )


def _greeted(at: float = 1_000_000.0) -> HostClock:
    clock = HostClock(WALL, START, WALL)
    assert clock.take(_hello(at), START, WALL).at == at
    return clock


@pytest.mark.parametrize("set_by", [7200.0, -7200.0, 30.0])
def test_a_host_whose_clock_was_set_while_we_were_away_goes_on_as_it_did(set_by: float) -> None:
    clock = _greeted()
    back = 1_000_060.0 + set_by
    assert clock.take(_hello(back), START + 60, WALL + 60).at == 1_000_060.0
    assert clock.set_by == set_by
    log = frames.Log(at=back + 1, path="/x", file="1:1", offset=0, size=1, text="x", mtime=back - 5)
    moved = clock.take(log, START + 61, WALL + 61)
    assert isinstance(moved, frames.Log)
    assert (moved.at, moved.mtime) == (1_000_061.0, 1_000_055.0)
    one = samples.Process(pid=1, ppid=0, start=1, started=back - 100)
    table = clock.take(frames.Processes(at=back + 2, list=(one,)), START + 62, WALL + 62)
    assert isinstance(table, frames.Processes)
    assert table.list[0].started == 999_960.0
    assert clock.take(_hello(back + 60), START + 120, WALL + 120).at == 1_000_120.0, "and again"


def test_what_we_slept_is_no_clock_that_was_set() -> None:
    clock = _greeted()
    assert clock.take(_hello(1_028_860.0), START + 60, WALL + 28_860).at == 1_028_860.0
    clock.skip(3600)
    assert clock.take(_hello(1_032_520.0), START + 120, WALL + 32_520).at == 1_032_520.0
    assert clock.set_by == 0.0


def test_our_own_clock_that_was_set_is_not_the_hosts() -> None:
    clock = _greeted()
    assert clock.take(_hello(1_000_060.0), START + 60, WALL - 7200).at == 1_000_060.0


def test_another_boot_and_a_made_up_host_have_the_time_that_they_say() -> None:
    assert _greeted().take(_hello(5000.0, "another"), START + 60, WALL + 60).at == 5000.0
    assert _greeted().take(_hello(5000.0, simulated=True), START + 60, WALL + 60).at == 5000.0


def test_bytes_of_a_log_that_waited_do_not_set_the_clock_back() -> None:
    clock = _greeted()
    clock.take(frames.Beat(at=1_000_100.0, n=1), START + 100, WALL + 100)
    log = frames.Log(at=1_000_020.0, path="/x", file="1:1", offset=0, size=1, text="x")
    assert clock.take(log, START + 100, WALL + 100).at == 1_000_020.0
    assert clock.now(START + 100) == 1_000_100.0
