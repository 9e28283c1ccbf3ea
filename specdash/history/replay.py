"""A recording as a host: the same picture, the same logs, at any speed and from any second on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

from specdash.errors import SpecdashError
from specdash.history.recording import Recording
from specdash.intake.listeners import Listeners
from specdash.intake.taking import take
from specdash.logs.buffer import LogBuffer
from specdash.logs.keeper import LogKeeper
from specdash.monitor.frames import AnyFrame, Log
from specdash.monitor.memory import Rules
from specdash.monitor.observe import acknowledge, snooze, start
from specdash.monitor.state import HostState

LONGEST_GAP_S = 30.0
"""A recording ticks every second: a longer gap is a clock that was set, and is not waited for."""

CLOCK_SET_S = 5.0
"""A frame older than the newest by more than this comes from a clock that was set back."""

LONGEST_WAIT_S = 0.5
"""Between two looks at whether we were stopped."""

AT_ONCE = 512
"""Frames fed in a row before others may run."""


def _played(recording: Recording) -> Iterator[tuple[float, AnyFrame]]:
    """Every frame with its second since the first one, whatever the host's clock did meanwhile."""
    second, newest = 0.0, None
    for frame in recording.frames():
        if newest is None or newest - frame.at > CLOCK_SET_S:
            newest = frame.at
        step = max(0.0, frame.at - newest)
        newest += step
        second += step if step <= LONGEST_GAP_S else 0.0
        yield second, frame


class ReplaySource:
    """A recorded host (see ``specdash.session.source.Source``)."""

    def __init__(
        self,
        recording: Recording,
        rules: Rules,
        *,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Nothing is played yet. ``speed`` 2.0 plays twice as fast as it happened, 0 stands still."""
        self.second = 0.0
        """Seconds of the recording that have been played."""
        self._recording, self._rules = recording, rules
        self._speed, self._clock, self._sleep = speed, clock, sleep
        self._anchor: tuple[float, float] | None = None
        """Our clock, and the second of the recording that belonged to it."""
        self._listeners = Listeners()
        self._stopped = asyncio.Event()
        self._memory = start(self.target, rules)
        self._logs = LogKeeper()
        self._playable = _played(recording)
        self._next = next(self._playable, None)

    @property
    def target(self) -> str:
        """The host that was recorded, and that this is a recording."""
        return f"{self._recording.header.host} (recording)"

    @property
    def watch_only(self) -> bool:
        """What is past cannot be acted upon."""
        return True

    @property
    def operations(self) -> None:
        """Nothing can be done to what is past."""
        return None

    locked = "this is a recording: nothing of it can be acted upon"

    def unlock(self) -> None:
        """Never."""
        raise SpecdashError(self.locked)

    @property
    def state(self) -> HostState:
        """The picture at this second of the recording; at its end it says so."""
        picture = self._memory.picture
        return msgspec.structs.replace(picture, over="the recording ends here") if self.ended else picture

    @property
    def ended(self) -> bool:
        """Every frame has been played."""
        return self._next is None

    @property
    def next_second(self) -> float:
        """When the next frame comes; the end, where none does."""
        return self.second if self._next is None else self._next[0]

    @property
    def recording(self) -> Path | None:
        """The recording itself."""
        return self._recording.path

    @property
    def probe(self) -> bool:
        """Nobody is there to be asked."""
        return False

    async def token(self, server_key: str) -> float:
        """Raises ``SpecdashError``: what is past cannot be asked."""
        raise SpecdashError("a recording cannot be asked for a token")

    def log(self, server_key: str) -> LogBuffer | None:
        """The bytes of that server's log up to now."""
        return self._logs.of(self._memory, server_key)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` soon after each change; changes that come together share one call."""
        return self._listeners.add(changed)

    def jump(self, second: float) -> None:
        """Play everything up to that second at once; backwards, from the beginning."""
        if second < self.second:
            self._rewind()
        self._play_until(second)
        self._anchor = None
        self._listeners.tell()

    async def run(self) -> None:
        """Play to the end at the given speed, then keep the last picture until stopped."""
        while self._speed and not self._stopped.is_set() and self._next is not None:
            wait = (self._next[0] - self._due()) / self._speed
            await self._sleep(min(max(0.0, wait), LONGEST_WAIT_S))
            self._play_until(self._due(), most=AT_ONCE)
            self._listeners.tell()
        await self._stopped.wait()

    async def stop(self) -> None:
        """Play no further."""
        self._stopped.set()

    def refresh(self) -> None:
        """There is nothing to ask."""

    def acknowledge(self, alert_key: str) -> None:
        """The operator has seen this alert."""
        self._memory = acknowledge(self._memory, alert_key)
        self._listeners.tell()

    def snooze(self, alert_key: str) -> None:
        """The operator wants to be told again in ten minutes of the recording."""
        self._memory = snooze(self._memory, alert_key)
        self._listeners.tell()

    # ---- playing -------------------------------------------------------------------------------------

    def _rewind(self) -> None:
        self.second = 0.0
        self._memory = start(self.target, self._rules)
        self._logs = LogKeeper()
        self._playable = _played(self._recording)
        self._next = next(self._playable, None)

    def _play_until(self, second: float, most: int | None = None) -> None:
        while self._next is not None and self._next[0] <= second and most != 0:
            self.second, frame = self._next
            before, self._memory = self._memory, take(self._memory, frame)
            if isinstance(frame, Log):
                self._logs.keep(frame, before, self._memory)
            self._next = next(self._playable, None)
            most = None if most is None else most - 1

    def _due(self) -> float:
        """The second of the recording that should be on the screen now."""
        now = self._clock()
        if self._anchor is None:
            self._anchor = (now, self.second)
        began, second = self._anchor
        return second + (now - began) * self._speed
