"""A streaming server that knows the truth: when it sent each chunk. One process, one loop.

``python tests/bench/mock.py --ttft 0.05 --itl 0.01`` prints ``{"port": N}``. ``GET /__stats`` tells what was
sent and when (monotonic clock, the one that a client on this machine reads, too), ``/__reset`` forgets it.
A request's time is the kernel's: being slow to read it is the server's fault, and no client's.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import re
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
WORD = " word"
STAMPS = 35
"""SO_TIMESTAMPNS: the kernel tells when a packet came."""


def options() -> argparse.Namespace:
    """What it is to be like."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ttft", type=float, default=0.05, help="seconds to the first token")
    parser.add_argument("--itl", type=float, default=0.01, help="seconds between chunks; 0: flat out")
    parser.add_argument("--k", type=int, default=1, help="tokens in a chunk")
    parser.add_argument("--first", type=int, default=0, help="tokens in the first chunk, if not k")
    parser.add_argument("--role", action="store_true", help="a role chunk as soon as the request is there")
    parser.add_argument("--reasoning", type=int, default=0, help="so many first tokens are reasoning")
    parser.add_argument("--no-usage", action="store_true")
    parser.add_argument("--refuse", type=int, default=0, help="every so manieth request gets a 429")
    parser.add_argument("--fail", type=int, default=0, help="… a 503")
    parser.add_argument("--cut", type=int, default=0, help="… is cut in the middle")
    parser.add_argument("--poison", type=int, default=0, help="… gets an error chunk in the middle")
    parser.add_argument("--key", default="", help="the only API key that is let in")
    return parser.parse_args()


def framed(data: bytes) -> bytes:
    """One HTTP chunk that holds one event."""
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


def body_of(head: bytes, rest: bytes) -> tuple[bytes, bytes] | None:
    """A request's body and what comes after it; None: it is not all there yet."""
    if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
        body = b""
        while True:
            size, line_end, after = rest.partition(b"\r\n")
            length = int(size, 16) if line_end else 0
            if not line_end or len(after) < length + 2:
                return None
            body, rest = body + after[:length], after[length + 2 :]
            if not length:
                return body, rest
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    length = int(found[1]) if found else 0
    return (rest[:length], rest[length:]) if len(rest) >= length else None


class Stream:
    """One answer on its way."""

    def __init__(self, number: int, body: Json, chat: bool, at: float) -> None:
        self.number = number
        self.chat = chat
        self.asked = at
        self.total = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        usage = body.get("stream_options") or {}
        self.usage = bool(usage.get("include_usage"))
        self.counts = bool(usage.get("continuous_usage_stats"))
        self.sent = 0
        self.times: list[float] = []
        self.prompt = len(json.dumps(body.get("messages") or body.get("prompt")).split())
        self.due = 0.0

    def chunk(self, tokens: int, finish: str | None, thought: bool = False, role: bool = False) -> bytes:
        """The JSON of one chunk, as vLLM writes it."""
        text = WORD * tokens
        choice: Json = {"index": 0}
        if self.chat:
            choice["delta"] = {"reasoning_content" if thought else "content": text}
            if role:
                choice["delta"] = {"role": "assistant", "content": ""}
        else:
            choice["text"] = text
        choice.update(logprobs=None, finish_reason=finish)
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        chunk: Json = {"id": f"cmpl-{self.number:016x}", "object": kind, "created": 1700000000}
        chunk.update(model="mock", choices=[choice])
        if self.counts:
            chunk["usage"] = self.account()
        return json.dumps(chunk, separators=(",", ":")).encode()

    def account(self) -> Json:
        """Usage so far."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.sent,
            "total_tokens": self.prompt + self.sent,
        }


class Peer:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.inbox = b""
        self.out = b""
        self.stream: Stream | None = None
        self.closing = False


class Mock:
    """The server."""

    def __init__(self, wanted: argparse.Namespace) -> None:
        self.wanted = wanted
        self.selector = selectors.DefaultSelector()
        self.heap: list[tuple[float, int, Peer]] = []
        self.serial = 0
        self.listener = socket.create_server(("127.0.0.1", wanted.port), backlog=4096)
        self.listener.setblocking(False)
        self.listener.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
        self.selector.register(self.listener, 1, self.accept)
        self.active = 0
        self.generated = self.prompted = self.drafts = self.answered = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was; counters and streams under way go on."""
        self.requests = self.aborted = self.most = 0
        self.bodies: list[Json] = []
        self.truth: list[Json] = []

    def run(self) -> None:
        """For ever."""
        while True:
            wait = self.heap[0][0] - time.monotonic() if self.heap else None
            # epoll sleeps whole milliseconds: the last one is waited for by looking.
            wait = None if wait is None else max(0.0, wait - 0.001)
            for key, _ in self.selector.select(wait):
                key.data()
            now = time.monotonic()
            while self.heap and self.heap[0][0] <= now:
                peer = heapq.heappop(self.heap)[2]
                if peer.stream is not None:
                    self.step(peer, peer.stream)

    def accept(self) -> None:
        """Somebody comes."""
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(sock)
            self.selector.register(sock, 1, lambda peer=peer: self.read(peer))

    def drop(self, peer: Peer) -> None:
        """They are gone, or we want them to be."""
        if peer.stream is not None:
            peer.stream = None
            self.active -= 1
            self.aborted += 1
        self.selector.unregister(peer.socket)
        peer.socket.close()

    def read(self, peer: Peer) -> None:
        """Requests come, or room to write, or the end."""
        if peer.out:
            self.flush(peer)
            if peer.socket.fileno() < 0:
                return
        at = time.monotonic()
        try:
            data, notes, _, _ = peer.socket.recvmsg(65536, 64)
        except BlockingIOError:
            return
        except OSError:
            data, notes = b"", []
        if notes:
            seconds, nanos = struct.unpack("qq", notes[0][2])
            at = min(at, seconds + nanos * 1e-9 - (time.time() - time.monotonic()))
        if not data:
            self.drop(peer)
            return
        peer.inbox += data
        head, blank, rest = peer.inbox.partition(b"\r\n\r\n")
        if blank and peer.stream is None and (found := body_of(head, rest)) is not None:
            body, peer.inbox = found
            self.answer(peer, head.decode("latin-1"), body, at)

    def answer(self, peer: Peer, head: str, body: bytes, at: float) -> None:
        """One request."""
        method, path, _ = head.split("\r\n")[0].split(" ")
        if method == "GET":
            return self.page(peer, path)
        self.requests += 1
        try:
            asked = json.loads(body)
        except ValueError:
            return self.whole(peer, 400, json.dumps({"error": {"message": "no JSON"}}))
        if len(self.bodies) < 2000:
            self.bodies.append(asked)
        wanted = self.wanted
        if wanted.key and f"Bearer {wanted.key}" not in head:
            return self.whole(peer, 401, json.dumps({"error": "Unauthorized"}))
        if wanted.refuse and self.requests % wanted.refuse == 0:
            return self.whole(
                peer, 429, json.dumps({"error": {"message": "slow down"}}), "Retry-After: 0\r\n"
            )
        if wanted.fail and self.requests % wanted.fail == 0:
            return self.whole(peer, 503, "")
        stream = Stream(self.requests, asked, path.endswith("/chat/completions"), at)
        self.prompted += stream.prompt
        peer.stream = stream
        self.active += 1
        self.most = max(self.most, self.active)
        early = wanted.role and stream.chat
        self.put(peer, HEAD + (framed(stream.chunk(0, None, role=True)) if early else b""))
        self.later(peer, at + wanted.ttft)

    def later(self, peer: Peer, when: float) -> None:
        """The next chunk goes out then."""
        self.serial += 1
        assert peer.stream is not None
        peer.stream.due = when
        heapq.heappush(self.heap, (when, self.serial, peer))

    def step(self, peer: Peer, stream: Stream) -> None:
        """Send one chunk; flat out, a hundred."""
        wanted = self.wanted
        if peer.out:
            return self.later(peer, time.monotonic() + 0.001)
        pieces = []
        for _ in range(1 if wanted.itl else 100):
            size = wanted.k if stream.sent or not wanted.first else wanted.first
            tokens = min(size, stream.total - stream.sent)
            thought = stream.sent < wanted.reasoning
            stream.sent += tokens
            self.generated += tokens
            self.drafts += 1
            finish = "length" if stream.sent >= stream.total else None
            pieces.append(framed(stream.chunk(tokens, finish, thought)))
            if finish or self.breaks(peer, stream, pieces):
                break
        now = time.monotonic()
        stream.times += [now] * len(pieces)
        if peer.stream is None:
            return
        if stream.sent >= stream.total:
            self.finish(peer, stream, pieces)
        self.put(peer, b"".join(pieces))
        if peer.stream is not None:
            self.later(peer, max(stream.due + wanted.itl, now - 10 * wanted.itl) if wanted.itl else now)

    def breaks(self, peer: Peer, stream: Stream, pieces: list[bytes]) -> bool:
        """Whether this stream ends badly, in its middle."""
        wanted = self.wanted
        if stream.sent * 2 < stream.total:
            return False
        if wanted.cut and stream.number % wanted.cut == 0:
            self.put(peer, b"".join(pieces))
            self.drop(peer)
            return True
        if wanted.poison and stream.number % wanted.poison == 0:
            pieces.append(framed(json.dumps({"error": {"message": "out of memory", "code": 500}}).encode()))
            pieces.append(framed(b"[DONE]") + b"0\r\n\r\n")
            self.put(peer, b"".join(pieces))
            peer.stream = None
            self.active -= 1
            return True
        return False

    def finish(self, peer: Peer, stream: Stream, pieces: list[bytes]) -> None:
        """Usage, the end, and the truth about it."""
        if stream.usage and not self.wanted.no_usage:
            usage = {"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": stream.account()}
            pieces.append(framed(json.dumps(usage).encode()))
        pieces.append(framed(b"[DONE]") + b"0\r\n\r\n")
        told = {"asked": stream.asked, "first": stream.times[0], "last": stream.times[-1]}
        gaps = [later - earlier for earlier, later in itertools.pairwise(stream.times)]
        self.truth.append({**told, "tokens": stream.sent, "chunks": len(stream.times), "gaps": gaps})
        self.answered += 1
        peer.stream = None
        self.active -= 1

    def page(self, peer: Peer, path: str) -> None:
        """What a GET asks for."""
        if path == "/v1/models":
            self.whole(peer, 200, json.dumps({"object": "list", "data": [{"id": "mock"}]}))
        elif path == "/health":
            self.whole(peer, 200, "")
        elif path == "/metrics":
            self.whole(peer, 200, self.metrics())
        elif path == "/__stats":
            shown: Json = {name: getattr(self, name) for name in ("active", "requests", "aborted", "most")}
            shown.update(truth=self.truth, bodies=self.bodies, answered=self.answered)
            self.whole(peer, 200, json.dumps(shown))
        elif path == "/__reset":
            self.reset()
            self.whole(peer, 200, "{}")
        else:
            self.whole(peer, 404, "{}")

    def metrics(self) -> str:
        """vLLM's counters as its page has them."""
        k = self.wanted.k
        rows = {
            "generation_tokens": self.generated,
            "prompt_tokens": self.prompted,
            "request_success": self.answered,
            "prefix_cache_queries": self.prompted,
            "prefix_cache_hits": 0,
        }
        if k > 1:
            rows["spec_decode_num_drafts"] = self.drafts
            rows["spec_decode_num_draft_tokens"] = 3 * self.drafts
            rows["spec_decode_num_accepted_tokens"] = self.generated - self.drafts
        lines = [
            f'vllm:{name}_total{{engine="0",model_name="mock"}} {value}.0' for name, value in rows.items()
        ]
        return "\n".join(["# TYPE vllm:generation_tokens_total counter", *lines, ""])

    def whole(self, peer: Peer, status: int, body: str, extra: str = "") -> None:
        """An answer that is no stream."""
        extra += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head = f"HTTP/1.1 {status} X\r\n{extra}\r\n"
        self.put(peer, (head + body).encode())

    def put(self, peer: Peer, data: bytes) -> None:
        """Send, the rest when there is room."""
        peer.out += data
        self.flush(peer)

    def flush(self, peer: Peer) -> None:
        """As much as the kernel takes."""
        try:
            sent = peer.socket.send(peer.out)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.drop(peer)
            return
        peer.out = peer.out[sent:]
        reading: Callable[[], None] = lambda: self.read(peer)  # noqa: E731
        self.selector.modify(peer.socket, 3 if peer.out else 1, reading)


def main() -> None:
    """The program."""
    mock = Mock(options())
    sys.stdout.write(json.dumps({"port": mock.listener.getsockname()[1]}) + "\n")
    sys.stdout.flush()
    mock.run()


if __name__ == "__main__":
    main()
