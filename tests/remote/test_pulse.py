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
    clock = HostClock(500.0, START)
    clock.set(600.0, START + 10)
    assert clock.now(START + 12.5) == 602.5
    clock.skip(60)
    assert clock.now(START + 12.5) == 662.5
