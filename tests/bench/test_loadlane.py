"""The short way through a stream gives exactly what the careful way gives, however the stream is cut."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specdash.agent.loadexchange import Exchange
from specdash.agent.loadhttp import Malformed

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TEXTS = (
    " word",
    " a",
    "ß",
    'quo"te',
    "back\\slash",
    "line\nfeed",
    "",
    " 語",
    "\r",
    "\u2028",
    " longer than that",
)


class Phase:
    """As much of a phase as one exchange needs."""

    def __init__(self) -> None:
        self.plan = SimpleNamespace(chat=True, loads=json.loads)
        self.name, self.chunks = "run", 0
        self.ends: list[str | None] = []

    def ended(self, exchange: Exchange, connection: Any, kind: str | None) -> None:
        self.ends.append(kind)


def event(text: str, **changes: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **changes}
    document = {"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def framed(body: bytes, size: bytes | None = None) -> bytes:
    return (size or b"%x" % len(body)) + b"\r\n" + body + b"\r\n"


def stream(chance: random.Random) -> bytes:
    """An answer as servers write them: mostly alike, now and then something else."""
    frames = [framed(event(""))]
    for _ in range(60):
        body = event(chance.choice(TEXTS[:3] if chance.random() < 0.8 else TEXTS))
        odd = chance.random()
        if odd < 0.05:
            body += event(" two in one")
        elif odd < 0.08:
            frames.append(framed(body[:20]))
            body = body[20:]
        elif odd < 0.1:
            body = b": still here\n\n"
        frames.append(framed(body, b"%X;ext=1" % len(body) if odd > 0.97 else None))
    usage = b'data: {"choices":[],"usage":{"completion_tokens":70,"prompt_tokens":5}}\n\n'
    frames += [framed(event("", finish_reason="stop")), framed(usage), framed(b"data: [DONE]\n\n")]
    return HEAD + b"".join(frames) + b"0\r\n\r\n"


def outcome(pieces: list[bytes], *, careful: bool) -> dict[str, Any]:
    phase = Phase()
    exchange = Exchange(cast(Any, phase), 0, None)
    for at, piece in enumerate(pieces):
        if careful:
            exchange.answer.frame = None
        try:
            exchange.data(piece, float(at))
        except Malformed as error:
            exchange.lost("protocol", str(error))
    answer = exchange.answer
    told = (answer.crc, answer.usage, answer.finish, answer.error, answer.says, answer.done)
    return {"times": answer.times, "told": told, "chunks": phase.chunks, "ends": phase.ends}


def cut(data: bytes, chance: random.Random, most: int) -> list[bytes]:
    pieces, at = [], 0
    while at < len(data):
        size = chance.randint(1, most)
        pieces.append(data[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("seed", range(12))
def test_any_cut_of_any_stream_gives_the_same_on_both_ways(seed: int) -> None:
    chance = random.Random(seed)
    for most in (7, 200, 1000, 100_000):
        pieces = cut(stream(chance), chance, most)
        short, careful = outcome(pieces, careful=False), outcome(pieces, careful=True)
        assert short == careful
        assert short["ends"] == [None]
        assert short["chunks"] == len(short["times"]) > 40


@pytest.mark.parametrize(
    "broken",
    [
        b"zz\r\n" + event(" word") + b"\r\n",
        b"-5\r\n" + event(" word") + b"\r\n",
        framed(event(" word"))[:-2] + b"xx",
        framed(event(" word"), b"5"),
        framed(event(" word")[:-2]),
        framed(event(" word").replace(b'"}', b'"')),
        framed(event(" word").replace(b"\n\n", b"\n\n\n\n")),
    ],
)
def test_what_is_broken_is_broken_on_both_ways(broken: bytes) -> None:
    whole = HEAD + framed(event(" one")) * 3 + broken + framed(event(" two")) * 3 + b"0\r\n\r\n"
    pieces = [whole[:400], whole[400:]]
    short, careful = outcome(pieces, careful=False), outcome(pieces, careful=True)
    assert short["ends"] == careful["ends"]
    assert short["told"][3:] == careful["told"][3:], "the same error, if there is one"


def test_the_short_way_is_taken() -> None:
    phase = Phase()
    exchange = Exchange(cast(Any, phase), 0, None)
    exchange.data(HEAD + framed(event(" one")), 1.0)
    exchange.answer._loads = lambda data: pytest.fail("it was read with care")
    exchange.data(framed(event(" two")) * 50, 2.0)
    assert exchange.answer.times == [1.0] + [2.0] * 50
