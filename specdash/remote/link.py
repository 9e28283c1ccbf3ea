"""The link to one host: connect, start the agent, follow its frames, notice a dead link, come back.

It never gives up on what time may heal and never repeats what only the operator can mend (a changed host
key, a refused login). Losing the link loses nothing: the server goes on, the log is resumed by its cursor.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import msgspec

from specdash import __version__
from specdash.errors import SpecdashError
from specdash.monitor import frames
from specdash.monitor.frames import AnyFrame
from specdash.remote.asking import Prompter
from specdash.remote.bootstrap import Bootstrap, wait_for_magic
from specdash.remote.carrier import Transport, transport_for
from specdash.remote.clock import Clock, HostClock, SystemClock
from specdash.remote.errors import LinkError, failure, said
from specdash.remote.gate import Gate
from specdash.remote.options import LinkOptions
from specdash.remote.payload import parcel, payload
from specdash.remote.pulse import Pulse
from specdash.remote.shellagent import ShellAgent
from specdash.remote.sudo import SudoPassword
from specdash.remote.target import Target
from specdash.remote.transport import Channel, Lines

BACK_OFF = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before the next attempt; the last one for ever."""
SETTLED = 10.0
"""A connection that lived this long starts the back-off anew."""
START_GRACE = 10.0
"""The agent may take this much longer to say hello than later to say anything."""

NO_SUDO = "the agent runs without sudo, other users' processes stay closed to it"
"""How the note begins that says why ``--sudo`` was of no use."""

State: TypeAlias = Literal["connecting", "live", "stale", "lost", "refused"]


class Link:
    """One host's connection.

    ``on_frame`` is called with every frame and its line: those of the host, and those born here (link,
    tick, note).
    """

    def __init__(
        self,
        target: Target,
        options: LinkOptions,
        on_frame: Callable[[AnyFrame, bytes], None],
        ask: Prompter | None = None,
        *,
        clock: Clock | None = None,
        transport: Transport | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.target = target
        self.state: State = "connecting"
        self.failure: SpecdashError | None = None
        """Why the last attempt or connection ended, until the next one lives."""
        self._options = options
        self._on_frame = on_frame
        self._ask = ask
        self._clock = clock or SystemClock()
        self._transport = transport
        self._jitter = jitter
        self._host_clock = HostClock(self._clock.wall(), self._clock.monotonic(), self._clock.wall())
        self._sudo = SudoPassword(target.text)
        self._work: asyncio.Task[None] | None = None
        self._channel: Channel | None = None
        self._pulse: Pulse | None = None
        self._dead: str | None = None
        self._stage = ""
        """How far the attempt to connect is, until that is said."""
        self._gate = Gate()
        self._settled = False
        self._attempt = 0
        self._leaving = asyncio.Event()
        self._by_hand = asyncio.Event()

    async def run(self) -> None:
        """Keep the link until ``stop``. Raises nothing that a network or a host can cause."""
        ticking = asyncio.ensure_future(self._tick_for_ever())
        ticking.add_done_callback(lambda _: self.stop())
        try:
            ask, tries = self._ask, 0
            while not self._leaving.is_set():
                error = await self._connection(ask)
                tries = 0 if self._settled else tries
                if self._leaving.is_set():  # a pause would forget that somebody wants to leave
                    break
                by_hand = error is not None and await self._pause(error, tries)
                ask, tries = (self._ask, 0) if by_hand else (None, tries + 1)
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking

    def send(self, request: Mapping[str, Any]) -> bool:
        """Send a request to the agent. False: no agent is there to hear it now, and it is not kept."""
        if self._channel is None or self.state not in ("live", "stale"):
            return False
        self._channel.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
        return True

    def retry_now(self) -> None:
        """Try again at once, as the operator wishes: questions may be asked again. A live link stays."""
        if self.state == "stale":
            self._end("given up, as you asked")
        if self.state != "live":
            self._by_hand.set()

    def renew(self, agent: Mapping[str, Any]) -> None:
        """Start another agent with these options over a new connection."""
        self._options = replace(self._options, agent=agent)
        self._end("another agent is started, as you asked")

    def stop(self) -> None:
        """Let go of the host; ``run`` returns soon. The agent ends, the server does not."""
        self._leaving.set()
        self._by_hand.set()
        if self._work:
            self._work.cancel()

    # One connection

    async def _connection(self, ask: Prompter | None) -> SpecdashError | None:
        """Live through one connection; says why it ended, None when it was told to stop."""
        self._attempt += 1
        self._settled, self._dead, self._stage = False, None, ""
        self._say("connecting")
        self._work = asyncio.ensure_future(self._live(ask))
        try:
            await asyncio.wait({self._work})
        except asyncio.CancelledError:
            self._work.cancel()
            await asyncio.wait({self._work})
            raise
        error = None if self._work.cancelled() else self._work.exception()
        if error is not None and not isinstance(error, SpecdashError):
            raise error
        return error

    async def _live(self, ask: Prompter | None) -> None:
        """Connect and follow. Ends only by raising ``SpecdashError`` or being cancelled."""
        host, options = self.target.text, self._options
        boot = Bootstrap(sudo=options.sudo, interpreters=options.interpreters)
        if self._transport is None:
            self._transport = transport_for(self.target, options, self._far)
        channel: Channel = await self._transport.open(boot, ask)
        way = "started here" if self.target.local else "ssh connects" if options.via_openssh else "logged in"
        self._far(f"{way}; looking for Python there")
        try:
            started = await wait_for_magic(channel, boot, host, passwords=self._sudo.asking(ask))
            for text in self._transport.notices():
                self._note("info", text)
            if started.no_sudo:
                self._note("warning", f"{NO_SUDO}: {started.no_sudo}")
            if started.interpreter:
                channel.write(parcel(options.block or payload(), {"version": __version__, **options.agent}))
            else:
                channel = ShellAgent(channel, sudo=options.sudo)
            self._far("the agent is sent; waiting for its first word")
            await self._follow(channel)
        except asyncio.CancelledError:
            await channel.close()
            raise
        finally:
            self._channel, self._pulse = None, None
            channel.abort()

    async def _follow(self, channel: Channel) -> None:
        born = self._clock.monotonic()
        self._channel = channel
        self._pulse = Pulse(born, self._clock.wall(), START_GRACE)
        self._gate = Gate()
        lines = Lines()
        while data := await channel.read():
            now = self._clock.monotonic()
            self._pulse.heard(now)
            self._settled = self._settled or (self._gate.greeted and now - born >= SETTLED)
            if self.state == "stale":
                self._say("live")
            for line in lines.feed(data):
                self._take(line)
                self._pulse.heard(self._clock.monotonic())  # who is slow to listen calls nobody silent
                await asyncio.sleep(0)  # a flood of frames must starve neither the heartbeat nor the keys
            if lines.take_dropped():
                self._gate.refuse("a line longer than 1 MiB")
                self._complain()
        raise await self._ended(channel)

    async def _ended(self, channel: Channel) -> LinkError:
        host = self.target.text
        if self._dead:
            return failure("ssh_connection_dead", host=host, detail=self._dead)
        end = await channel.end()
        if end.lost:
            more = "" if end.lost.rstrip(".").lower() == "connection lost" else f" ({end.lost})"
            return failure("ssh_connection_dead", host=host, detail=f"the connection broke{more}")
        words = said(end.stderr)
        detail = f": {words}" if words else ""
        if not self._gate.greeted:
            return failure("ssh_agent_failed", host=host, exit=end.exit, detail=detail)
        return failure("ssh_connection_dead", host=host, detail=f"the agent ended ({end.exit}){detail}")

    async def _pause(self, error: SpecdashError, tries: int) -> bool:
        """Wait before the next attempt; says whether the operator asked for it."""
        self.failure = error
        self._by_hand.clear()
        key = error.key if isinstance(error, LinkError) else None
        if not isinstance(error, LinkError) or not error.retry:
            self._say("refused", str(error), key=key, hint=error.hint)
            await self._by_hand.wait()
            return True
        delay = round(BACK_OFF[min(tries, len(BACK_OFF) - 1)] * (0.8 + 0.4 * self._jitter()), 2)
        self._say("lost", str(error), key=key, hint=error.hint, retry_in_s=delay)
        asked, slept = (
            asyncio.ensure_future(self._by_hand.wait()),
            asyncio.ensure_future(self._clock.sleep(delay)),
        )
        try:
            await asyncio.wait({asked, slept}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            slept.cancel()
        return self._by_hand.is_set()

    # Frames

    def _take(self, line: bytes) -> None:
        frame = self._gate.take(line)
        if frame is None:
            self._complain()
            return
        now = self._clock.monotonic()
        frame = self._host_clock.take(frame, now, self._clock.wall())
        if isinstance(frame, frames.Hello):
            self.failure, self._attempt = None, 0
            self._say("live")
        self._on_frame(frame, line)
        if isinstance(frame, frames.Hello):
            if self._host_clock.set_by:
                self._note(
                    "info", f"its clock was set by {self._host_clock.set_by:+.0f} s; ages go on as before"
                )
            self._ping(now)
        elif isinstance(frame, frames.Pong) and self._pulse:
            rtt = self._pulse.pong(frame.n, now)
            if rtt is not None:
                self._say("live", rtt_ms=round(rtt, 1))

    def _complain(self) -> None:
        complaint = self._gate.complaint()
        if complaint:
            self._note("warning", complaint)

    def _note(self, level: Literal["info", "warning"], text: str) -> None:
        self._emit(frames.Note(at=self._now(), level=level, text=text))

    def _say(self, state: State, reason: str | None = None, **more: Any) -> None:
        self.state = state
        self._emit(frames.Link(at=self._now(), state=state, reason=reason, attempt=self._attempt, **more))

    def _emit(self, frame: AnyFrame) -> None:
        self._on_frame(frame, msgspec.json.encode(frame))

    def _now(self) -> float:
        return self._host_clock.now(self._clock.monotonic())

    def _far(self, stage: str) -> None:
        """How far an attempt is. Said with the next tick: one that is quick has nothing to say."""
        self._stage = stage

    # Time

    async def _tick_for_ever(self) -> None:
        while True:
            await self._clock.sleep(1.0)
            self._second()
            self._emit(frames.Tick(at=self._now()))

    def _second(self) -> None:
        now, wall = self._clock.monotonic(), self._clock.wall()
        if self.state == "connecting" and self._stage:
            self._say("connecting", self._stage)
            self._stage = ""
        if self._pulse is None:
            return
        beat = self._pulse.second(now, wall)
        self._host_clock.skip(beat.slept_s)
        if beat.word == "dead":
            self._end(f"nothing came from it for {beat.silent_s:.0f} s")
            return
        if beat.word == "stale" and self.state == "live":
            slept = f"this machine slept for {beat.slept_s:.0f} s" if beat.slept_s else None
            self._say("stale", slept or f"nothing came from it for {beat.silent_s:.0f} s")
        if beat.ping and self._gate.greeted:
            self._ping(now)

    def _ping(self, now: float) -> None:
        if self._pulse:
            self.send({"r": "ping", "n": self._pulse.ping(now)})

    def _end(self, why: str) -> None:
        """Give a dead connection up: its reader then ends with this reason."""
        self._dead = why
        if self._channel:
            self._channel.abort()
