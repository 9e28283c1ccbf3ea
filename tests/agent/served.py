"""A listener of the test's own that speaks HTTP, or not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import BinaryIO

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


PATIENCE_S = 60.0
"""So long somebody waits for what comes at once on a machine that has time."""


Handler = Callable[[socket.socket, bytes], bool]


def answers(data: bytes, keep: bool = True) -> Handler:
    """The same answer to every request."""

    def answer(sock: socket.socket, request: bytes) -> bool:
        sock.sendall(data)
        return keep

    return answer


def one_request(wire: BinaryIO) -> bytes:
    """Head and body as they were sent, in however many pieces they came; empty at the end."""
    head, length = b"", 0
    while not head.endswith(b"\r\n\r\n"):
        line = wire.readline()
        if not line:
            return b""
        head += line
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return head + wire.read(length)


class Served:
    """A listener that answers each request by a function of the test's; true keeps the connection."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.requests: list[bytes] = []
        self.connections = 0
        self.released = threading.Event()
        self.handler = answers(OK)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as wire, contextlib.suppress(OSError):
            while request := one_request(wire):
                self.requests.append(request)
                if not self.handler(sock, request):
                    return

    def close(self) -> None:
        self.released.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # or accept() would keep it open
        self.listener.close()
