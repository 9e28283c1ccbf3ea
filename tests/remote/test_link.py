"""The link over a made-up transport and a made-up clock: no test here waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from specdash.monitor import frames
from specdash.remote.errors import failure
from specdash.remote.link import Link
from specdash.remote.options import LinkOptions
from specdash.remote.target import parse_target
from specdash.remote.transport import End
from tests.remote.doubles import FakeChannel, FakeClock, FakeTransport, Operator, Seen, running, settle


class Bench:
    """A link with everything around it made up."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.transport = FakeTransport(self.clock)
        self.seen = Seen()
        self.operator = Operator()
        options = LinkOptions(block=b"agent", agent={"watch": True})
        self.link = Link(
            parse_target("gpubox"),
            options,
            self.seen,
            self.operator,
            clock=self.clock,
            transport=self.transport,
            jitter=lambda: 0.5,
        )

    async def beat(self, seconds: int) -> None:
        """A healthy host for a while."""
        for n in range(seconds):
            self.transport.channel.say("beat", n=n)
            await self.clock.pass_(1)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    async with running(bench.link):
        yield bench


async def test_a_link_is_live_once_the_agent_has_greeted(bench: Bench) -> None:
    assert bench.seen.states == ["connecting", "live"]
    assert isinstance(bench.seen.frames[2], frames.Hello)
    assert bench.seen.frames[2].host == "box"


async def test_each_frame_comes_with_its_line_for_the_recording(bench: Bench) -> None:
    bench.transport.channel.feed(b'{"t":"beat","at":5,"n":1,"new":"field"}\n')
    await settle()
    assert bench.seen.lines[-1] == b'{"t":"beat","at":5,"n":1,"new":"field"}'
    for frame, line in zip(bench.seen.frames, bench.seen.lines, strict=True):
        assert frames.decode(line) == frame


async def test_ticks_carry_the_hosts_clock_on(bench: Bench) -> None:
    bench.transport.channel.say("beat", at=5000.0, n=1)
    await bench.clock.pass_(2.5)
    assert [tick.at for tick in bench.seen.of(frames.Tick)] == [5001.0, 5002.0]


async def test_silence_makes_the_link_stale_after_three_seconds_and_lost_after_ten(bench: Bench) -> None:
    await bench.clock.pass_(2.9)
    assert bench.seen.states[-1] == "live"
    await bench.clock.pass_(0.2)
    assert bench.seen.states[-1] == "stale"
    assert bench.seen.links[-1].reason == "nothing came from it for 3 s"
    await bench.clock.pass_(6.7)
    assert (bench.link.state, bench.transport.channel.aborted) == ("stale", False)
    await bench.clock.pass_(0.2)
    assert bench.seen.links[-1].state == "lost"
    assert bench.seen.links[-1].reason == "gpubox: nothing came from it for 10 s"
    assert bench.seen.links[-1].retry_in_s == 0.5
    assert bench.transport.channel.aborted


async def test_ticks_go_on_while_the_link_is_lost(bench: Bench) -> None:
    bench.transport.failures = [failure("ssh_port_refused", host="gpubox", address="h", port=22)] * 99
    await bench.clock.pass_(12)
    before = len(bench.seen.of(frames.Tick))
    await bench.clock.pass_(30)
    assert len(bench.seen.of(frames.Tick)) == before + 30


async def test_a_stale_link_that_speaks_again_is_live(bench: Bench) -> None:
    await bench.clock.pass_(5)
    await bench.beat(1)
    assert bench.seen.states[-2:] == ["stale", "live"]


async def test_a_break_that_gives_no_reason_is_not_said_twice(bench: Bench) -> None:
    await bench.beat(12)
    bench.transport.channel.ended = End("exit 255", lost="Connection lost")
    bench.transport.channel.feed(b"")
    await settle()
    assert bench.seen.links[-1].reason == "gpubox: the connection broke"


async def test_a_lost_link_reconnects_and_greets_anew(bench: Bench) -> None:
    await bench.beat(12)
    bench.transport.channel.ended = End("exit 255", lost="Connection reset by peer")
    bench.transport.channel.feed(b"")
    await settle()
    assert bench.seen.links[-1].reason == "gpubox: the connection broke (Connection reset by peer)"
    assert bench.seen.links[-1].key == "ssh_connection_dead"
    await bench.clock.pass_(0.6)
    assert bench.seen.states[-3:] == ["lost", "connecting", "live"]
    assert len(bench.seen.of(frames.Hello)) == 2


async def test_the_back_off_grows_to_ten_seconds_and_starts_anew_after_a_settled_connection() -> None:
    bench = Bench()
    bench.transport.failures = [failure("ssh_port_refused", host="gpubox", address="h", port=22)] * 6
    async with running(bench.link):
        await bench.clock.pass_(29)  # live after 28.5 s
        await bench.beat(11)
        bench.transport.channel.feed(b"")
        await settle()
    delays = [link.retry_in_s for link in bench.seen.links if link.state == "lost"]
    assert delays == [0.5, 1.0, 2.0, 5.0, 10.0, 10.0, 0.5]


async def test_an_agent_that_dies_at_once_is_not_restarted_in_a_hurry(bench: Bench) -> None:
    for _ in range(4):
        bench.transport.channel.ended = End("exit 1", b"Traceback ...\nImportError: no module named x\n")
        bench.transport.channel.feed(b"")
        await bench.clock.pass_(6)
    lost = [link for link in bench.seen.links if link.state == "lost"]
    assert [link.retry_in_s for link in lost] == [0.5, 1.0, 2.0, 5.0]
    reason = lost[0].reason or ""
    assert "the agent ended (exit 1)" in reason
    assert "ImportError: no module named x" in reason


async def test_an_automatic_reconnect_asks_nothing_and_the_operators_retry_may(bench: Bench) -> None:
    bench.transport.failures = [failure("ssh_2fa", host="gpubox", what="a password")]
    bench.transport.channel.feed(b"")
    await bench.clock.pass_(1)
    assert bench.transport.asked == [bench.operator, None]
    assert bench.seen.links[-1].state == "refused"
    assert bench.seen.links[-1].retry_in_s is None
    bench.link.retry_now()
    await settle()
    assert bench.transport.asked[-1] is bench.operator
    assert bench.link.state == "live"


async def test_what_only_the_operator_can_mend_is_never_repeated(bench: Bench) -> None:
    bench.transport.failures = [failure("ssh_auth_agent", host="gpubox")]
    bench.transport.channel.feed(b"")
    await bench.clock.pass_(3600)
    assert len(bench.transport.asked) == 2
    assert bench.seen.links[-1].key == "ssh_auth_agent"


async def test_a_retry_by_hand_does_not_wait_for_the_back_off(bench: Bench) -> None:
    bench.transport.failures = [failure("ssh_port_refused", host="gpubox", address="h", port=22)] * 5
    bench.transport.channel.feed(b"")
    await bench.clock.pass_(9)
    bench.transport.failures = []
    bench.link.retry_now()
    await settle()
    assert bench.link.state == "live"


async def test_requests_reach_a_live_agent_and_no_other(bench: Bench) -> None:
    assert bench.link.send({"r": "refresh"})
    assert bench.transport.channel.requests[-1] == {"r": "refresh"}
    bench.transport.failures = [failure("ssh_port_refused", host="gpubox", address="h", port=22)] * 5
    bench.transport.channel.feed(b"")
    await settle()
    assert not bench.link.send({"r": "refresh"})


async def test_pings_measure_the_round_trip(bench: Bench) -> None:
    ping = bench.transport.channel.requests[-1]
    assert ping == {"r": "ping", "n": 1}
    bench.clock.now += 0.025
    bench.transport.channel.say("pong", n=1)
    await settle()
    assert bench.seen.links[-1].rtt_ms == 25.0
    await bench.beat(6)
    assert bench.transport.channel.requests[-1] == {"r": "ping", "n": 2}


async def test_after_sleep_a_host_that_answers_keeps_its_link(bench: Bench) -> None:
    bench.clock.suspend(2000)
    await bench.clock.pass_(1)
    assert bench.seen.links[-1].reason == "this machine slept for 2000 s"
    assert bench.transport.channel.requests[-1]["r"] == "ping"
    bench.transport.channel.say("pong", n=2)
    await bench.clock.pass_(1)
    assert bench.link.state == "live"


async def test_after_sleep_a_silent_host_is_reconnected_at_once(bench: Bench) -> None:
    bench.clock.suspend(2000)
    await bench.clock.pass_(3)
    assert bench.seen.states[-2:] == ["stale", "lost"]
    await bench.clock.pass_(1)
    assert bench.link.state == "live"


async def test_ticks_jump_with_the_sleep(bench: Bench) -> None:
    at = bench.clock.wall()
    bench.clock.suspend(2000)
    await bench.clock.pass_(1)
    assert bench.seen.of(frames.Tick)[-1].at == pytest.approx(at + 2001)


async def test_garbage_is_counted_and_told_and_the_link_lives_on(bench: Bench) -> None:
    bench.transport.channel.feed(b"\x1b]0;owned\x07garbage\n" + b"y" * (1 << 20) + b"y\n")
    bench.transport.channel.feed(b'{"t":"link","at":1,"state":"refused","reason":"forged"}\n')
    bench.transport.channel.say("beat", n=7)
    await settle()
    assert [note.text for note in bench.seen.of(frames.Note)] == ["1 unreadable from the host, last: garbage"]
    assert bench.link.state == "live"
    assert bench.seen.of(frames.Beat)[-1].n == 7


async def test_an_agent_that_never_greets_is_given_up_after_twenty_seconds() -> None:
    bench = Bench()
    bench.transport.greet = False
    async with running(bench.link):
        await bench.clock.pass_(19)
        assert bench.seen.states == ["connecting"]
        await bench.clock.pass_(1)
        assert bench.seen.states == ["connecting", "lost"]


async def test_a_connection_that_takes_its_time_says_how_far_it_is_and_a_quick_one_nothing() -> None:
    bench = Bench()
    bench.transport.greet = False
    async with running(bench.link):
        assert [link.reason for link in bench.seen.links] == [None]
        await bench.clock.pass_(3)
        assert [link.reason for link in bench.seen.links[1:]] == [
            "the agent is sent; waiting for its first word"
        ]
        bench.transport.channel.hello()
        await settle()
        assert (bench.seen.links[-1].state, bench.seen.links[-1].reason) == ("live", None)


async def test_what_the_transport_noticed_is_told() -> None:
    bench = Bench()
    bench.transport.notes = ["gpubox: new ED25519 host key SHA256:x accepted"]
    async with running(bench.link):
        assert bench.seen.of(frames.Note)[0].text == bench.transport.notes[0]


async def test_stopping_closes_the_channel_kindly() -> None:
    bench = Bench()
    async with running(bench.link) as task:
        bench.link.stop()
        await settle()
        assert task.done()
    assert bench.transport.channel.closed


async def test_stopping_does_not_wait_for_a_back_off_or_a_refusal() -> None:
    for key in ("ssh_auth_agent", "ssh_login_timeout"):
        bench = Bench()
        bench.transport.failures = [failure(key, host="gpubox")]
        async with running(bench.link) as task:
            bench.link.stop()
            await settle()
            assert task.done()


async def test_whoever_leaves_a_question_by_ctrl_c_is_not_held_by_what_it_refused() -> None:
    bench = Bench()

    async def ask_and_leave(boot: object, ask: object) -> FakeChannel:
        bench.link.stop()  # Ctrl-C while the question stood; the answer of nobody is no
        raise failure("ssh_unknown_host", host="gpubox", type="", fingerprint="", why="it was not accepted")

    bench.transport.open = ask_and_leave  # type: ignore[method-assign]
    async with running(bench.link) as task:
        assert task.done()


async def test_an_error_of_the_listener_is_not_swallowed() -> None:
    bench = Bench()

    def broken(frame: frames.AnyFrame, line: bytes) -> None:
        if isinstance(frame, frames.Tick):
            raise ZeroDivisionError

    link = Link(
        parse_target("gpubox"), LinkOptions(block=b""), broken, clock=bench.clock, transport=bench.transport
    )
    with pytest.raises(ZeroDivisionError):
        async with running(link):
            await bench.clock.pass_(1)


async def test_who_is_slow_to_listen_calls_nobody_silent_and_holds_up_nobody_else() -> None:
    bench = Bench()
    heard: list[str] = []

    def slow(frame: frames.AnyFrame, line: bytes) -> None:
        bench.seen(frame, line)
        heard.append(type(frame).__name__)
        if isinstance(frame, frames.Beat):
            bench.clock.spend(4)

    link = Link(
        parse_target("gpubox"), LinkOptions(block=b""), slow, clock=bench.clock, transport=bench.transport
    )
    async with running(link):
        beats = b"".join(b'{"t":"beat","at":5,"n":%d}\n' % n for n in range(5))
        bench.transport.channel.feed(beats)
        await settle()
        told = [name for name in heard if name in ("Beat", "Tick")]
        assert told == ["Beat", "Tick"] * 5
        assert bench.seen.states == ["connecting", "live"]
