"""A load generator that plays what a test wrote, and a host whose picture a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from specdash.bench.events import AnyEvent, Begin, Client, Counters, End, Request, Tick
from specdash.bench.plan import Workload
from specdash.errors import SpecdashError
from specdash.monitor.state import HostState

PAGE = (
    "vllm:generation_tokens_total {tokens}\nvllm:spec_decode_num_drafts_total {drafts}\n"
    "vllm:spec_decode_num_accepted_tokens_total {accepted}\n"
    'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="0"}} {accepted}\n'
)


def answered(n: int, at: float, *, tokens: int = 100, each_s: float = 0.01) -> Request:
    """A request that ended well: the first token after 50 ms."""
    first, last = at + 0.05, at + 0.05 + (tokens - 1) * each_s
    return Request(n=n, status=200, sent=at, first=first, last=last, end=last, chunks=tokens, tokens=tokens)


def good_run(*, tokens: int = 100, each_s: float = 0.01, accept: float | None = None) -> list[AnyEvent]:
    """What the generator prints of four requests, one after the other."""
    events: list[AnyEvent] = [Begin(at=1_795_990_000.0, model="m", prompts="abc", requests=4, warmups=2)]
    events.append(Tick(t=0.5, phase="warmup", running=1, total=2))
    if accept is not None:
        events.append(Counters(t=1, when="before", text=PAGE.format(tokens=0, drafts=0, accepted=0)))
    at = 1.0
    for n in range(4):
        one = answered(n, at, tokens=tokens, each_s=each_s)
        at = one.end or at
        events += [
            one,
            Tick(
                t=at,
                tok_s=1 / each_s,
                tokens_by="usage",
                done=n + 1,
                total=4,
                running=1,
                left_s=3.0 - n,
                ttft_ms=50,
            ),
        ]
    if accept is not None:
        page = PAGE.format(tokens=4 * tokens, drafts=1000, accepted=round(1000 * (accept - 1)))
        events.append(Counters(t=at, when="after", text=page))
    return [*events, End(t=at, done=4, client=Client(cpu_pct=2))]


class Scripted:
    """Plays one list of events for each run; an error in it is raised."""

    def __init__(self, *runs: Sequence[AnyEvent | SpecdashError], hold: bool = False) -> None:
        self._runs = list(runs)
        self._hold = hold
        self._stop = asyncio.Event()
        self.loads: list[Workload] = []
        self.commands: list[tuple[str, ...]] = []
        self.stopped = 0

    async def run(self, load: Workload) -> AsyncIterator[AnyEvent]:
        self.loads.append(load)
        for event in self._runs.pop(0):
            if isinstance(event, SpecdashError):
                raise event
            if self._hold and isinstance(event, End):
                await self._stop.wait()
                yield End(t=event.t, done=4, cancelled=True)
                return
            yield event
            await asyncio.sleep(0)

    async def script(
        self, command: Sequence[str], tok_s: str | None = None, limit: float | None = None
    ) -> AsyncIterator[AnyEvent]:
        self.commands.append(tuple(command))
        for event in self._runs.pop(0):
            if isinstance(event, SpecdashError):
                raise event
            yield event
            await asyncio.sleep(0)

    def stop(self) -> None:
        self.stopped += 1
        self._stop.set()


class FakeHost:
    """A host beside a run."""

    def __init__(self, state: HostState, argv: tuple[str, ...] = ()) -> None:
        self.state, self._argv = state, argv
        self.listeners: list[Callable[[], None]] = []

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(changed)
        return lambda: self.listeners.remove(changed)

    def command_line(self, server_key: str) -> tuple[str, ...]:
        return self._argv
