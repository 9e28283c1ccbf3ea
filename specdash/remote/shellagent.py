"""A host without Python, through a plain shell: the same frames, fewer of them, and nothing can be done.

It asks the shell what the agent would have looked up, so the monitor needs to know no difference: cards by
nvidia-smi and processes from /proc every five seconds, logs every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import msgspec

from specdash import __version__
from specdash.monitor import frames
from specdash.remote.shellread import GPU_FIELDS, Table, cards, details, greeting, looks, machine, stats
from specdash.remote.shelltail import ShellTail
from specdash.remote.shellwire import Hushed, Wire
from specdash.remote.transport import Channel, End

CALM = 5.0
"""Seconds between two looks at cards and processes: each costs the host a few small programs."""
AGAIN = 6
"""Every so many looks the command lines of servers are read anew."""
MEMORY_EVERY = 10.0
SMI_LIMIT = 20.0
"""nvidia-smi that takes longer is said not to answer."""
AT_ONCE = 40
"""Processes that one request asks about: pings and logs get their turn in between."""
SAYS = (
    "no Python there: a shell runs nvidia-smi and reads /proc every 5 s, logs every second; "
    "nothing can be done there, the server is not asked over HTTP, and the kernel's log is not read"
)


class ShellAgent:
    """Looks like an agent's channel: requests in, frames out."""

    def __init__(self, channel: Channel, *, sudo: bool = False) -> None:
        self._channel = channel
        self._wire = Wire(channel)
        self._out: asyncio.Queue[bytes] = asyncio.Queue(64)
        self._tails: dict[str, ShellTail] = {}
        self._table = Table(0.0)
        self._epoch = 0.0
        self._owners: tuple[int, ...] = ()
        self._pending = b""
        self._asked_at: float | None = None
        self._hurry = asyncio.Event()
        self._beats = 0
        self._words = ""
        work = (self._wire.listen(), self._run(sudo=sudo), self._relay_cards())
        self._work = {asyncio.ensure_future(one) for one in work}
        self._late: set[asyncio.Future[None]] = set()

    # The channel that the link sees

    async def read(self) -> bytes:
        """Give the next frames; empty at the end."""
        getting = asyncio.ensure_future(self._out.get())
        try:
            await asyncio.wait({getting, *self._work}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
            for work in self._work:
                if work.done() and not work.cancelled() and work.exception():
                    self._words = f"its shell was not understood: {work.exception()}"
            return b""
        finally:
            getting.cancel()

    def write(self, data: bytes) -> None:
        """Take requests as the agent would."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    async def end(self) -> End:
        """Say how it ended."""
        end = await self._channel.end()
        return replace(end, stderr=self._words.encode()) if self._words else end

    async def close(self) -> None:
        """End the shell by ending its stdin."""
        self._stop()
        await self._channel.close()

    def abort(self) -> None:
        """Let go at once."""
        self._stop()
        self._channel.abort()

    def _stop(self) -> None:
        for work in self._work | self._late:
            work.cancel()

    # Requests

    def _obey(self, request: dict[str, Any]) -> None:
        verb = request["r"]
        if verb == "watch":
            self._table.patterns = [re.compile(pattern) for pattern in request["match"]]
            self._hurry.set()
        elif verb == "tail":
            if "\n" not in request["path"]:
                self._tails[request["path"]] = ShellTail(
                    request["path"], request.get("cursor"), int(request.get("backlog", 0))
                )
        elif verb == "untail":
            self._tails.pop(request["path"], None)
        elif verb == "refresh":
            self._hurry.set()
        elif verb == "ping":
            self._later(self._pong(int(request["n"])))
        elif "id" in request:
            words = "no Python there: nothing can be done"
            self._later(self._say(frames.Reply(at=self._now(), id=request["id"], ok=False, error=words)))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _pong(self, number: int) -> None:
        with contextlib.suppress(Hushed):
            await self._wire.ask("ping")
            await self._say(frames.Pong(at=self._now(), n=number))

    # Rounds

    async def _run(self, *, sudo: bool) -> None:
        with contextlib.suppress(Hushed):
            first = greeting(await self._wire.ask("hello"), __version__)
            self._table.booted = first.booted
            self._epoch = first.hello.at - time.monotonic()
            await self._say(first.hello)
            words = SAYS + ("; --sudo is of no use" if sudo else "")
            if first.lacks:
                words += f"; it also lacks {', '.join(first.lacks)}, so processes or logs stay unseen"
            await self._say(frames.Note(at=self._now(), level="warning", text=words))
            await asyncio.gather(self._seconds(), self._looks(), self._memory())

    async def _seconds(self) -> None:
        """A beat and the logs, once a second."""
        while True:
            began = time.monotonic()
            await self._wire.ask("beat")
            self._beats += 1
            await self._say(frames.Beat(at=self._now(), n=self._beats))
            for tail in tuple(self._tails.values()):
                more = True
                while more and self._tails.get(tail.path) is tail:
                    answer = await self._wire.ask(tail.request())
                    for frame in tail.take(answer, self._now()):
                        await self._say(frame)
                    more = tail.more
            await asyncio.sleep(max(0.1, 1.0 - (time.monotonic() - began)))

    async def _looks(self) -> None:
        """Cards and processes."""
        round_ = 0
        while True:
            self._hurry.clear()
            if self._asked_at is None:
                self._asked_at = time.monotonic()
                await self._wire.ask("gpus " + ",".join(GPU_FIELDS))
            elif time.monotonic() - self._asked_at > SMI_LIMIT:
                waited = time.monotonic() - self._asked_at
                await self._say(
                    frames.Gpus(at=self._now(), error=f"nvidia-smi: no answer for {waited:.0f} s")
                )
            if self._table.patterns:
                await self._processes(again=round_ % AGAIN == 0)
                round_ += 1
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), CALM)

    async def _processes(self, *, again: bool) -> None:
        listed = await self._wire.ask("list")
        pids = [int(word[6:]) for line in listed for word in line.split() if word[6:].isdigit()]
        now = {}
        for at in range(0, len(pids), 10 * AT_ONCE):
            words = " ".join(map(str, pids[at : at + 10 * AT_ONCE]))
            now.update(stats(await self._wire.ask("stat " + words)))
        strangers = self._table.strangers(now, self._now(), again=again)
        looked = {}
        for at in range(0, len(strangers), AT_ONCE):
            words = " ".join(map(str, strangers[at : at + AT_ONCE]))
            looked.update(looks(await self._wire.ask("look " + words)))
        worth = self._table.matching(now, looked)
        if worth:
            details(await self._wire.ask("more " + " ".join(map(str, worth))), looked)
        self._table.learn(now, looked)
        await self._say(frames.Processes(at=self._now(), list=self._table.rows(now, self._owners)))

    async def _memory(self) -> None:
        while True:
            await self._say(machine(await self._wire.ask("memory"), self._now()))
            await asyncio.sleep(MEMORY_EVERY)

    async def _relay_cards(self) -> None:
        while True:
            rows, status, apps, apps_status = await self._wire.news.get()
            self._asked_at = None
            found, driver = cards(rows, apps if apps_status == 0 else None)
            error = None
            if status or not found:
                error = "nvidia-smi: " + (" ".join(" ".join(rows).split())[:200] or f"exit status {status}")
            self._owners = tuple(one.pid for card in found for one in card.processes or ())
            await self._say(frames.Gpus(at=self._now(), driver=driver, cards=found, error=error))

    async def _say(self, frame: frames.AnyFrame) -> None:
        await self._out.put(msgspec.json.encode(frame) + b"\n")

    def _now(self) -> float:
        return self._epoch + time.monotonic()
