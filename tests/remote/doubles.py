"""Stand-ins for time, for a transport and for an operator, and a listener to a link."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from specdash.errors import SpecdashError
from specdash.monitor import frames
from specdash.monitor.frames import AnyFrame
from specdash.remote.asking import HostKeyQuestion, Prompter, SecretQuestion
from specdash.remote.bootstrap import Bootstrap
from specdash.remote.link import Link
from specdash.remote.transport import End

F = TypeVar("F", bound=frames.Frame)


class FakeClock:
    """Time that passes only when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall_now = 1_800_000_000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = itertools.count()

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.wall_now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._number), future))
        await future

    async def pass_(self, seconds: float) -> None:
        """Let time pass, waking each sleeper at its moment."""
        await settle()
        end = self.now + seconds
        while self._sleepers and self._sleepers[0][0] <= end + 1e-9:
            due, _, future = heapq.heappop(self._sleepers)
            self.wall_now += due - self.now
            self.now = due
            if not future.done():
                future.set_result(None)
            await settle()
        self.wall_now += end - self.now
        self.now = end
        await settle()

    async def pass_until(self, true: Callable[[], object]) -> None:
        """Let time pass bit by bit, while real processes do what they take real time for."""
        while not true():
            await self.pass_(0.6)
            await asyncio.sleep(0.02)

    def spend(self, seconds: float) -> None:
        """A call that takes so long: who sleeps is due, and has his turn when the loop has."""
        self.now += seconds
        self.wall_now += seconds
        while self._sleepers and self._sleepers[0][0] <= self.now:
            heapq.heappop(self._sleepers)[2].set_result(None)

    def suspend(self, seconds: float) -> None:
        """The machine sleeps: the wall clock goes on, the monotonic one stands still."""
        self.wall_now += seconds


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(30):
        await asyncio.sleep(0)


class FakeChannel:
    """A channel whose host is the test: it answers the bootstrap, greets, and then says what it is told."""

    def __init__(self, boot: Bootstrap, clock: FakeClock, *, greet: bool = True) -> None:
        self.clock = clock
        self.requests: list[dict[str, Any]] = []
        self.ended = End("exit 0")
        self.aborted = False
        self.closed = False
        self._greet = greet
        self._started = False
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.feed(b"welcome\n" + boot.magic + b"py /usr/bin/python3\n")

    def feed(self, data: bytes) -> None:
        self._queue.put_nowait(data)

    def say(self, t: str, at: float | None = None, **fields: Any) -> None:
        self.feed(
            json.dumps({"t": t, "at": self.clock.wall() if at is None else at, **fields}).encode() + b"\n"
        )

    def hello(self, at: float | None = None) -> None:
        who = {"proto": 1, "specdash": "0", "host": "box", "boot": "b", "pid": 1, "uid": 0, "user": "u"}
        self.say("hello", at, **who, python="3.6")

    async def read(self) -> bytes:
        return await self._queue.get()

    def write(self, data: bytes) -> None:
        if self._started:
            self.requests += [json.loads(line) for line in data.splitlines()]
            return
        self._started = True
        if self._greet:
            self.hello()

    async def end(self) -> End:
        return self.ended

    async def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True
        self.feed(b"")


class FakeTransport:
    """Opens fake channels, or fails as told."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.channels: list[FakeChannel] = []
        self.failures: list[SpecdashError] = []
        self.asked: list[Prompter | None] = []
        self.notes: list[str] = []
        self.greet = True

    @property
    def channel(self) -> FakeChannel:
        return self.channels[-1]

    async def open(self, boot: Bootstrap, ask: Prompter | None) -> FakeChannel:
        self.asked.append(ask)
        if self.failures:
            raise self.failures.pop(0)
        self.channels.append(FakeChannel(boot, self.clock, greet=self.greet))
        return self.channel

    def notices(self) -> list[str]:
        return self.notes


class Operator:
    """Answers as told, and remembers what was asked."""

    def __init__(self, *, trust: bool = True, secrets: tuple[str | None, ...] = ()) -> None:
        self.trust = trust
        self.secrets = list(secrets)
        self.keys: list[HostKeyQuestion] = []
        self.questions: list[SecretQuestion] = []

    async def host_key(self, question: HostKeyQuestion) -> bool:
        self.keys.append(question)
        return self.trust

    async def secret(self, question: SecretQuestion) -> str | None:
        self.questions.append(question)
        return self.secrets.pop(0) if self.secrets else None


class Seen:
    """Everything a link said, in order."""

    def __init__(self) -> None:
        self.frames: list[AnyFrame] = []
        self.lines: list[bytes] = []
        self._news = asyncio.Event()

    def __call__(self, frame: AnyFrame, line: bytes) -> None:
        self.frames.append(frame)
        self.lines.append(line)
        self._news.set()

    def of(self, kind: type[F]) -> list[F]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    @property
    def links(self) -> list[frames.Link]:
        return self.of(frames.Link)

    @property
    def states(self) -> list[str]:
        """The states of the link, repetitions left out."""
        return [state for state, _ in itertools.groupby(link.state for link in self.links)]

    async def until(self, true: Callable[[], Any], limit: float = 90.0) -> None:
        """Wait for real time to bring something; the limit is only there to fail instead of hanging."""

        async def wait() -> None:
            while not true():
                self._news.clear()
                await self._news.wait()

        try:
            await asyncio.wait_for(wait(), limit)
        except asyncio.TimeoutError:
            raise AssertionError(f"not in {limit} s; the link said {self.links[-3:]}") from None

    async def quiet(self) -> None:
        """Wait until what was under way has arrived: for a second, five beats long, nothing came."""
        heard = -1
        while heard != len(self.frames):
            heard = len(self.frames)
            await asyncio.sleep(1.0)

    async def state(self, state: str, limit: float = 90.0) -> frames.Link:
        """Wait for a state and give its frame."""
        await self.until(lambda: self.links and self.links[-1].state == state, limit)
        return self.links[-1]


@asynccontextmanager
async def running(link: Link) -> AsyncIterator[asyncio.Future[None]]:
    """Run a link for the length of a block."""
    task = asyncio.ensure_future(link.run())
    await settle()
    try:
        yield task
    finally:
        link.stop()
        await asyncio.wait_for(task, 60)
