"""A small HTTP/1.1 server with the manners of uvicorn: kept connections, chunked streams, access lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Request Entity Too Large",
    503: "Service Unavailable",
}
MOST_BODY = 8 << 20


class Exchange:
    """One request and the way to answer it."""

    def __init__(
        self, method: str, target: str, body: bytes, writer: asyncio.StreamWriter, log: Access
    ) -> None:
        self.method = method
        self.target = target
        self.path = target.partition("?")[0]
        self.body = body
        self.open = True
        """The client is still there."""
        self._writer = writer
        self._log = log
        peer = writer.get_extra_info("peername") or ("127.0.0.1", 0)
        self._peer = f"{peer[0]}:{peer[1]}"

    async def send(self, status: int, body: bytes = b"", kind: str | None = None) -> None:
        """A whole answer."""
        self._begin(status, f"content-length: {len(body)}", kind)
        self._writer.write(body)
        await self._drain()

    async def send_json(self, value: Any, status: int = 200) -> None:
        """A whole answer as JSON."""
        await self.send(status, json.dumps(value, separators=(",", ":")).encode(), "application/json")

    async def begin_stream(self) -> None:
        """The head of a stream of server-sent events."""
        self._begin(200, "transfer-encoding: chunked", "text/event-stream; charset=utf-8")
        await self._drain()

    async def event(self, value: Any) -> None:
        """One event; a text is sent as it is (``[DONE]``)."""
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        data = f"data: {text}\n\n".encode()
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._drain()

    async def end_stream(self) -> None:
        """The last, empty chunk."""
        self._writer.write(b"0\r\n\r\n")
        await self._drain()

    def _begin(self, status: int, length: str, kind: str | None) -> None:
        phrase = PHRASES.get(status, "")
        head = [f"HTTP/1.1 {status} {phrase}", "server: uvicorn", length]
        if kind:
            head.append(f"content-type: {kind}")
        self._writer.write("\r\n".join([*head, "", ""]).encode())
        self._log(f'{self._peer} - "{self.method} {self.target} HTTP/1.1" {status} {phrase}')

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            self.open = False
        if self._writer.is_closing():
            self.open = False


Access = Callable[[str], None]
Handler = Callable[[Exchange], Awaitable[None]]


async def serve(host: str, port: int, handler: Handler, log: Access) -> asyncio.Server:
    """Listen. Raises OSError where the port is taken."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _one(reader, writer, handler, log):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connected, host, port, backlog=128)


async def _one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, log: Access
) -> bool:
    """One request of a connection; whether another may follow."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, version = head[0].split(" ")
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    size = int(headers.get("content-length", 0))
    if size > MOST_BODY:
        await Exchange(method, target, b"", writer, log).send(413)
        return False
    body = await reader.readexactly(size)
    await handler(Exchange(method, target, body, writer, log))
    return (
        version == "HTTP/1.1" and headers.get("connection", "").lower() != "close" and not writer.is_closing()
    )
