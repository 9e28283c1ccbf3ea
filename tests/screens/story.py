"""A host that tells one story: its log, cards, processes and answers are all of one moment.

Only what a host sends is made up here. State, phases, steps, evidence and alerts are what the program makes
of it: a picture that contradicts itself is a fault of the program.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from specdash.intake.rules import default_rules
from specdash.logs.buffer import LogBuffer
from specdash.logs.keeper import LogKeeper
from specdash.monitor.frames import AnyFrame, Ending, Gpus, Hello, Http, Link, Log, Processes, Tick
from specdash.monitor.limits import Learned
from specdash.monitor.observe import learn, observe, start
from specdash.monitor.polling import CONNECT, GENERATE, HEALTH, LOADS, METRICS, MODELS
from specdash.monitor.samples import Card, CardProcess, Process
from specdash.monitor.state import HostState
from tests.screens.storylog import Load, Piece, load_of, memory_left, when
from tests.tui.fakes import FakeSource

MAIN, START, PATH = 4242, 99100, "/var/log/server.log"
KEY = f"{MAIN}:{START}"
H200_MIB = 143_771
WATCHED_S = 150
"""The program has looked on for so long, where a story does not say otherwise: its charts are full."""
COMMAND = (
    "python3 -m sglang.launch_server --model-path /models/target --host 0.0.0.0 --port 30000"
    " --speculative-algorithm EAGLE3 --speculative-draft-model-path /models/draft-eagle3"
    " --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)


@dataclass(frozen=True)
class Story:
    """One SGLang server on a host of its own."""

    log: tuple[Piece, ...]
    until: float
    """The moment of the picture."""
    met: float | None = None
    """When the program connected; what was written before comes as a backlog."""
    ranks: int = 8
    stood: tuple[float, float] = (0.0, 0.0)
    """Between these moments its requests ran, and nothing came of them."""
    gone_at: float | None = None
    """When its processes were there for the last time."""
    ended_at: float | None = None
    """When the operator began to end it."""
    metrics: bool = False
    token_ago_s: float | None = None
    """So long ago somebody asked it for a token."""
    card: Callable[[Card, float], Card] = lambda card, at: card
    """What is odd about a card at that moment."""
    others: Callable[[float], Iterable[Process]] = lambda at: ()
    """Processes beside it."""
    answers: Callable[[float], Iterable[Http]] = lambda at: ()
    """What those answer."""
    more: Iterable[AnyFrame] = ()
    """What comes last: a link that is lost, news of the kernel."""
    learned: Learned | None = None
    target: str = "root@gpubox"
    watch_only: bool = False

    @cached_property
    def begun(self) -> float:
        return self.log[0].at - 7

    @cached_property
    def _left(self) -> list[tuple[float, float]]:
        return memory_left(self.log)

    @cached_property
    def _loads(self) -> list[Load]:
        return [said for piece in self.log if (said := load_of(piece.data, piece.at))]

    @cached_property
    def _said(self) -> dict[bytes, float]:
        return {}

    def _since(self, words: bytes) -> float:
        """When this was first written; long after all else where it never was."""
        if words not in self._said:
            self._said[words] = when(self.log, words)
        return self._said[words]

    def told(self) -> FakeSource:
        """What the program knows of it at the end."""
        state, logs = self._seen
        return FakeSource(state=state, logs=dict(logs), watch_only=self.watch_only)

    @cached_property
    def _seen(self) -> tuple[HostState, dict[str, LogBuffer]]:
        memory, keeper = start(self.target, default_rules()), LogKeeper()
        for frame in self._frames():
            before, memory = memory, observe(memory, frame)
            if isinstance(frame, Processes) and self.learned is not None and KEY not in memory.learned:
                memory = learn(memory, KEY, self.learned)
            if isinstance(frame, Log):
                keeper.keep(frame, before, memory)
        buffers = {server.key: keeper.of(memory, server.key) for server in memory.servers}
        return memory.picture, {key: log for key, log in buffers.items() if log is not None}

    def _frames(self) -> Iterator[AnyFrame]:
        met = self.until - WATCHED_S if self.met is None else self.met
        yield Link(at=met, state="live", rtt_ms=12.0)
        yield Hello(
            at=met, proto=1, specdash="0", host=self.target.rpartition("@")[2], boot="b0", pid=991, uid=0,
            user="root", python="3.10.12", verbs=("look",) if self.watch_only else ("look", "act"), cpus=64,
            host_pids=True,
        )  # fmt: skip
        offset, lines, at = 0, 0, met
        while True:
            yield from self._looked(at, met)
            written = [piece for piece in self.log[lines:] if piece.at <= at] if self._alive(met) else []
            if written:
                data = b"".join(piece.data for piece in written)
                yield Log(
                    at=at, path=PATH, file="1:7", offset=offset, size=offset + len(data), data=data,
                    mtime=written[-1].at, break_=None if offset else "start",
                )  # fmt: skip
                offset, lines = offset + len(data), lines + len(written)
            yield Tick(at=at)
            if at >= self.until:
                break
            at = min(at + 1, self.until)
        yield from self.more
        yield Tick(at=max([self.until, *(frame.at for frame in self.more)]))

    def _looked(self, at: float, met: float) -> Iterator[AnyFrame]:
        """The newest of everything but the log."""
        if at == self.ended_at:
            yield Ending(at=at, server=KEY)
        second = round(self.until - at)
        yield Gpus(at=at, driver="570.133.20", cards=tuple(self._cards(at)))
        if second % 2 == 0:
            yield Processes(at=at, list=(*self._processes(at), *self.others(at)))
            yield from self._answers(at, second, met)
            yield from self.answers(at)

    def _alive(self, at: float) -> bool:
        return self.begun <= at and (self.gone_at is None or at <= self.gone_at)

    def _processes(self, at: float) -> Iterator[Process]:
        if not self._alive(at):
            return
        age = at - self.begun
        reads = (max(0.0, at - self._left[0][0]) * (1.9 * 2**30) / self.ranks) if self._loading(at) else 0
        line = (*COMMAND.split(), "--tp", str(self.ranks), *(["--enable-metrics"] * self.metrics))
        listens = self._since(b"Uvicorn running") <= at
        yield Process(
            pid=MAIN, ppid=1, start=START, started=self.begun, sid=MAIN, pgid=MAIN, state="S", user="root",
            comm="python3", argv=line, cpu_s=age / 50, rss_mib=2900, threads=60, out=PATH, err=PATH,
            ports=(30000,) if listens else (), bind="0.0.0.0" if listens else None, uvm=False, env={},
        )  # fmt: skip
        titles = [f"sglang::scheduler_TP{rank}" for rank in range(self.ranks)]
        for place, title in enumerate([*titles, "sglang::detokenizer"]):
            works = title in titles
            yield Process(
                pid=MAIN + 1 + place, ppid=MAIN, start=START + 900, started=self.begun + 9, sid=MAIN,
                pgid=MAIN, state="R" if works else "S", user="root", comm="sglang::schedul", argv=(title,),
                cpu_s=age if works else age / 100, rss_mib=5200, threads=200, read_bytes=int(reads),
                out=PATH, err=PATH, uvm=works,
            )  # fmt: skip

    def _loading(self, at: float) -> bool:
        return bool(self._left) and self._left[0][0] <= at and len([a for a, _ in self._left if a <= at]) < 2

    def _cards(self, at: float) -> Iterator[Card]:
        used, (util, watts) = self._used_mib(at), self._busy(at)
        for index in range(max(8, self.ranks)):
            mine = index < self.ranks and used > 0
            mib = used + (index % 3) * 100 if mine else 0
            card = Card(
                index=index, uuid=f"GPU-8f3a1c6{index:x}-5b0d-4e21-9c77-2d1f0a64be07",
                name="NVIDIA H200", bus=f"00000000:{0x17 + index:02X}:00.0",
                total_mib=H200_MIB, used_mib=mib, memory_call="v2",
                util=util - index % 2 * (util > 9) if mine else 0,
                power_w=watts + 3 * index if mine else 76.0 + index, power_limit_w=700.0,
                temp_c=(34 if watts < 200 else 58) + index % 3 if mine else 32 + index % 2,
                sm_mhz=1980 if mine else 345, sm_max_mhz=1980,
                processes=(CardProcess(pid=MAIN + 1 + index, mib=mib),) if mine else (),
            )  # fmt: skip
            yield self.card(card, at)

    def _used_mib(self, at: float) -> int:
        """By what the first rank says it has left; the parameters are there before the first shard is."""
        if not self._left or not self._alive(at) or at < self._left[0][0]:
            return 0
        place = bisect_right(self._left, (at, 1e9))
        (since, left), *_ = self._left[place - 1 :]
        if place < len(self._left):
            end, least = self._left[place]
            left = least if end > since + 60 and at > since + 1 else left
        return H200_MIB - round(left * 1024)

    def _busy(self, at: float) -> tuple[int, float]:
        """Utilisation and watts."""
        if self._since(b"fired up") <= at:
            if self.stood[0] <= at <= self.stood[1]:
                return 100, 118.0
            return (97, 412.0) if self._load(at) else (0, 118.0)
        return (100, 214.0) if self._since(b"Capture ") <= at else (3, 121.0)

    def _load(self, at: float) -> Load | None:
        """The batch of this moment."""
        last = self._last(at)
        works = last is not None and (at - last.at <= 3 or self.stood[0] <= at <= self.stood[1])
        return last if works else None

    def _last(self, at: float) -> Load | None:
        place = bisect_right(self._loads, (at, 1e9))
        return self._loads[place - 1] if place else None

    def _answers(self, at: float, second: int, met: float) -> Iterator[Http]:
        if not self._alive(at):
            return
        if self._since(b"Uvicorn running") > at:
            yield Http(at=at, server=KEY, path=CONNECT, error="refused")
            return
        if self._since(b"fired up") > at:
            yield Http(at=at, server=KEY, path=HEALTH, status=503)
            return
        if second % 30 == 12 or at == met:
            yield Http(at=at, server=KEY, path=HEALTH, status=200)
            models = {"object": "list", "data": [{"id": "/models/target", "object": "model"}]}
            yield Http(at=at, server=KEY, path=MODELS, status=200, body=json.dumps(models))
        if self.token_ago_s is not None and second == self.token_ago_s:
            yield Http(at=at, server=KEY, path=GENERATE[0], status=200, body="{}")
        yield Http(at=at, server=KEY, path=LOADS, status=200, body=self._loads_page(at))
        if second % 10 == 4:
            page = self._metrics_page(at) if self.metrics else ""
            yield Http(at=at, server=KEY, path=METRICS, status=200 if self.metrics else 404, body=page)

    def _loads_page(self, at: float) -> str:
        now = self._load(at)
        last = self._last(at)
        load = {
            "num_running_reqs": now.running if now else 0,
            "num_waiting_reqs": 0,
            "token_usage": now.tokens / 512_000 if now else 0.0,
            "timestamp": now.at if now else at,
            "gen_throughput": last.tok_s if last else 0.0,
            "speculative": {"accept_length": last.accept if last else None},
        }
        return json.dumps({"loads": [load]})

    def _metrics_page(self, at: float) -> str:
        """One request in twelve waits long for its first token; the tokens come every 9 ms or so."""
        done = sum(piece.data.count(b"POST /v1/chat/") for piece in self.log if piece.at <= at)
        made = sum(load.tok_s for load in self._loads if load.at <= at)
        buckets: dict[str, dict[str, float]] = {
            "time_to_first_token": {
                "0.04": done * 5 // 12,
                "0.1": done * 11 // 12,
                "0.2": done,
                "+Inf": done,
            },
            "inter_token_latency": {
                "0.006": made * 0.05,
                "0.008": made * 0.25,
                "0.01": made * 0.85,
                "0.015": made,
                "+Inf": made,
            },
        }
        lines = [f"sglang:num_requests_total {done}", f"sglang:generation_tokens_total {made}"]
        for name, counts in buckets.items():
            lines += [f'sglang:{name}_seconds_bucket{{le="{le}"}} {many}' for le, many in counts.items()]
        return "\n".join([*lines, f"sglang:time_to_first_token_seconds_count {done}"])
