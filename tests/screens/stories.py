"""The nights of which pictures are kept: a server starts, serves, hangs or dies, on cards well or not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec

from specdash.monitor.frames import Health, Http, Kernel, Link
from specdash.monitor.limits import Learned
from specdash.monitor.polling import CONNECT
from specdash.monitor.samples import Card, CardHealth, CardProcess, KernelLine, Process
from tests.screens.story import MAIN, Story
from tests.screens.storylog import Piece, batches, pieces, said

STARTS = Learned(
    gap_s={"weights": 6.4, "capture": 14.0},
    usual_s={"dist_init": 4.0, "weights": 351.0, "kv_cache": 1.0, "capture": 56.0, "warmup": 5.0},
    worst_s={"dist_init": 5.0, "weights": 402.0, "kv_cache": 2.0, "capture": 64.0, "warmup": 7.0},
    starts=6,
    whole=6,
)
"""Six good starts of the same kind before."""
UP_S = 6 * 3600 + 12 * 60 + 40


def good(ranks: int = 8) -> tuple[Piece, ...]:
    """A start that goes well, and the first requests."""
    return pieces("02-healthy-tp8-eagle3-v0.5.23.log", ranks)


def began(log: tuple[Piece, ...]) -> float:
    return log[0].at


def _starting(after_s: float, ranks: int = 8) -> Story:
    log = good(ranks)
    return Story(log=log, met=began(log) - 6, until=began(log) + after_s, ranks=ranks, learned=STARTS)


@cache
def loading() -> Story:
    return _starting(200)


@cache
def capture() -> Story:
    return _starting(391)


@cache
def serving(ranks: int = 8, rests_s: float = 0.0) -> Story:
    """For eight minutes it has had work, until so many seconds ago."""
    log = good(ranks)
    until = began(log) + UP_S
    busy = batches(until - 480 - rests_s, until + 1 - rests_s)
    return Story(log=(*log, *busy), until=until, ranks=ranks, token_ago_s=120, learned=STARTS)


def idle(ranks: int = 8) -> Story:
    return replace(serving(ranks, rests_s=860), token_ago_s=None)


def alone(rests_s: float = 0.0) -> Story:
    """Two cards, on which one request after the other was answered: a benchmark of one stream."""
    story = serving(ranks=2)
    end = story.until + 1 - rests_s
    return replace(story, log=(*good(2), *batches(end - 63, end, lambda at: 2.11, 1)))


def degraded() -> Story:
    """For five minutes no draft token has been accepted."""
    story = serving()
    log = (
        *good(),
        *batches(story.until - 480, story.until + 1, lambda at: 1.0 if at > story.until - 310 else 2.41),
    )
    return replace(story, log=log, met=story.until - 400)


def measured() -> Story:
    return replace(serving(), metrics=True)


@cache
def stalled() -> Story:
    """The third rank never came to the graphs, the others wait for it; eight hours later somebody looks."""
    hung = pieces("03-stalled-graph-capture-tp8-eagle3-v0.5.5.log")
    log = tuple(one for one in hung if not re.search(rb"TP3\] Capture cuda graph begin", one.data))
    until = log[-1].at + 8 * 3600 + 171

    def card(card: Card, at: float) -> Card:
        waits = card.index != 3
        return msgspec.structs.replace(
            card,
            util=100 if waits else 0,
            power_w=(118.0 if waits else 84.0) + card.index,
            temp_c=47 if waits else 36,
        )

    return Story(log=log, until=until, met=until - 52, card=card, learned=STARTS)


@cache
def crashed(ranks: int = 8) -> Story:
    """The draft's context is shorter than the target's."""
    log = pieces("05-context-mismatch-eagle3-tp8-v0.5.23.log", ranks)
    return Story(log=log, until=log[-1].at + 48, gone_at=log[-1].at, ranks=ranks, learned=STARTS)


def stopped(ranks: int = 8) -> Story:
    """Somebody ended it, and it obeyed."""
    story = serving(ranks)
    began = story.until
    last = (
        said(began, "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."),
        said(
            began + 3,
            "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
        ),
    )
    log = (*(piece for piece in story.log if piece.at <= began), *last)
    return replace(story, log=log, until=began + 15, ended_at=began, gone_at=began + 3)


def gone() -> Story:
    """It ends while it loads, and says nothing."""
    story = loading()
    log = tuple(piece for piece in story.log if piece.at <= story.until)
    return replace(story, log=log, until=story.until + 48, gone_at=story.until)


def lost() -> Story:
    story = capture()
    reason = "no answer for 10 s"
    more = (
        Link(at=story.until + 10, state="lost", reason=reason, retry_in_s=2, attempt=1),
        Link(at=story.until + 43, state="lost", reason=reason, retry_in_s=16, attempt=4),
        Link(at=story.until + 51, state="lost", reason=reason, retry_in_s=8, attempt=4),
    )
    return replace(story, more=more)


def stale() -> Story:
    story = serving()
    silent = Link(at=story.until + 4, state="stale", reason="nothing came from it for 4 s", rtt_ms=12)
    return replace(story, more=(silent,))


def two_servers() -> Story:
    """Beside it a vLLM server loads, on a terminal."""
    story = serving(ranks=4)
    line = "/venv/bin/python3 /venv/bin/vllm serve /models/small --port 8000".split()

    def others(at: float) -> Iterable[Process]:
        for pid, ppid, argv in ((5000, 1200, line), (5020, 5000, ["VLLM::EngineCore"])):
            yield Process(
                pid=pid, ppid=ppid, start=pid, started=story.until - 40, sid=5000, pgid=5000, state="R",
                user="root", argv=tuple(argv), cpu_s=at - story.until + 40, uvm=pid == 5020, env={},
                out="/dev/pts/3", err="/dev/pts/3",
            )  # fmt: skip

    def card(card: Card, at: float) -> Card:
        if card.index != 4 or at < story.until - 30:
            return card
        mib = 2_000 + round(900 * (at - story.until + 30))
        return _held(card, 5020, mib, util=4, power_w=124.0, sm_mhz=1980)

    def answers(at: float) -> Iterable[Http]:
        yield Http(at=at, server="5000:5000", path=CONNECT, error="refused")

    return replace(story, others=others, card=card, answers=answers)


def watch_only() -> Story:
    """Sixteen cards; the third rank is behind."""
    story = _starting(391, ranks=16)
    late = re.compile(rb"TP3\] Capture")

    def card(card: Card, at: float) -> Card:
        if card.index != 3:
            return card
        used = min(card.used_mib or 0, round(120.2 * 1024))
        mine = (CardProcess(pid=MAIN + 4, mib=used),)
        return msgspec.structs.replace(card, util=0, power_w=96.0, temp_c=36, used_mib=used, processes=mine)

    log = tuple(piece for piece in story.log if not late.search(piece.data))
    return replace(story, log=log, card=card, target="dgx2", watch_only=True)


def no_server() -> Story:
    """A server died before we came, and one card kept its memory, which nobody owns."""
    story = crashed()

    def card(card: Card, at: float) -> Card:
        total = 97_887
        card = msgspec.structs.replace(
            card,
            name="NVIDIA RTX PRO 6000",
            total_mib=total,
            power_limit_w=600.0,
            sm_max_mhz=2430,
            sm_mhz=180,
        )
        return _orphaned(card) if card.index == 1 else card

    return replace(story, until=story.until + 300, met=story.until + 150, card=card)


@cache
def sick_cards() -> Story:
    """Four cards serve, one too hot; of the others one is not free, one lost, one silent, one mute."""
    story = serving(ranks=4)
    since = story.until - 41

    def card(card: Card, at: float) -> Card:
        if card.index == 2:
            return _hot(card, 88)
        if card.index == 4:
            return _orphaned(card)
        if card.index == 5 and at > since:
            return _silent(card, "GPU is lost")
        if card.index == 6 and at > since + 5:
            return _silent(card, f"no answer for {round(at - since)} s (power)")
        return msgspec.structs.replace(card, util=None, missing=("util",)) if card.index == 7 else card

    return replace(story, card=card)


@cache
def odd_cards() -> Story:
    """One card is shared, one held by its power limit, one too hot; of the others two are not well."""
    story = serving(ranks=4)
    came = story.until - 50

    def card(card: Card, at: float) -> Card:
        if card.index == 0 and at > came:
            mine = (*(card.processes or ()), CardProcess(pid=777, mib=10_240))
            return msgspec.structs.replace(card, used_mib=(card.used_mib or 0) + 10_240, processes=mine)
        if card.index == 1:
            return msgspec.structs.replace(card, power_w=699.0, sm_mhz=1560, throttle=("power cap",))
        if card.index == 2:
            return _hot(card, 91)
        if card.index == 4:
            return _orphaned(card)
        return _silent(card, "GPU is lost") if card.index == 5 and at > came else card

    def others(at: float) -> Iterable[Process]:
        if at > came:
            yield Process(
                pid=777, ppid=1, start=9_000_000, started=came, user="bob", uid=1000, state="S",
                comm="jupyter", argv=("jupyter-lab",), cpu_s=9.0, uvm=True,
                container="docker:0123456789ab", nspid=17,
            )  # fmt: skip

    return replace(story, card=card, others=others)


def looked_into() -> Story:
    """The shared card, whose memory had errors and of whose links one is down."""
    story = odd_cards()
    until = story.until
    health = CardHealth(
        index=0, ecc=True, ecc_pending=True, corrected=3, uncorrected=1, corrected_ever=12,
        uncorrected_ever=1, rows_remapped=2, rows_pending=True, nvlinks=18, nvlinks_up=17, nvlink_errors=5,
        mem_mhz=3201, mem_max_mhz=3201, pstate=0,
    )  # fmt: skip
    told = (
        (
            700,
            "17:00",
            63,
            "pid=4243, name=sglang::schedul, Row Remapper: New row (0x1) marked for remapping",
        ),
        (300, "65:00", 31, "pid=9, another card"),
        (
            61,
            "17:00",
            94,
            "pid=4243, name=sglang::schedul, Contained: CE User Channel (0x9). RST: No, D-RST: No",
        ),
    )
    lines = tuple(
        KernelLine(at=until - ago, text=f"NVRM: Xid (PCI:0000:{bus}): {xid}, {text}")
        for ago, bus, xid, text in told
    )
    return replace(story, more=(Health(at=until, cards=(health,)), Kernel(at=until, lines=lines)))


def _held(card: Card, pid: int, mib: int, **more: Any) -> Card:
    changed = msgspec.structs.replace(card, used_mib=mib, processes=(CardProcess(pid=pid, mib=mib),))
    return msgspec.structs.replace(changed, **more)


def _orphaned(card: Card) -> Card:
    return msgspec.structs.replace(card, used_mib=75_980, power_w=88.0, sm_mhz=card.sm_max_mhz, temp_c=36)


def _hot(card: Card, temp_c: int) -> Card:
    return msgspec.structs.replace(
        card, power_w=522.0, temp_c=temp_c, sm_mhz=1155, throttle=("hardware thermal",)
    )


def _silent(card: Card, why: str) -> Card:
    return Card(index=card.index, uuid=card.uuid, name=card.name, bus=card.bus, error=why)


def eventful() -> Story:
    """It served, hung for a while and served again."""
    story = serving()
    met, hung, back = story.until - 400, story.until - 250, story.until - 175
    busy = (*batches(met, hung), *batches(back, story.until + 1))
    return replace(story, log=(*good(), *busy), met=met, stood=(hung, back))
