"""Ask the servers on this host: one thread and one kept connection a server, one request in flight."""

import os
import threading

from specdash.agent import httpclient, procfs, pulse
from specdash.agent.patience import Patience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]
    Errand = Callable[[httpclient.Client], None]

CONNECT = "connect"
"""The pseudo path for a bare TCP connect: it leaves no line in the server's log."""

MOST_BODY = 48 * 1024
KEY_LIMIT = 1.0
"""Seconds in which a server's environment can be read, or it is asked without its key."""
REMEMBERED_TOKENS = 64


class Call(object):
    """One thing to ask again and again."""

    def __init__(self, described: "Json") -> None:
        self.path: str = described["path"]
        self.every = max(0.2, float(described.get("every", 2.0)))
        self.limit = min(60.0, max(0.1, float(described.get("limit", 3.0))))
        self.body = min(MOST_BODY, int(described.get("body", 2048)))
        self.keep = tuple(prefix.encode() for prefix in described.get("keep") or ())
        self.due = 0.0


class Server(object):
    """The polls of one server, in a thread of its own."""

    def __init__(
        self,
        host: "Host",
        key: str,
        send: "Callable[[Json, object], None]",
        complain: "Callable[[str], None]",
    ) -> None:
        self.host = host
        self.key = key
        self._send = send
        self._complain = complain
        self._lock = threading.Condition()
        self._calls: "list[Call]" = []
        self._errands: "list[Errand]" = []
        self._client: "httpclient.Client | None" = None
        self._ended = False
        self._thread: "threading.Thread | None" = None

    def poll(self, request: "Json", headers: "dict[str, str]") -> None:
        """Ask these from now on; what was asked before and still is keeps its turn."""
        calls = [Call(described) for described in request["calls"]]
        with self._lock:
            due = {call.path: call.due for call in self._calls}
            for call in calls:
                call.due = min(due.get(call.path, 0.0), self.host.monotonic() + call.every)
            self._calls = calls
            self._use(request["host"], request["port"], headers)
            self._wake()

    def errand(self, host: str, port: int, headers: "dict[str, str]", run: "Errand") -> None:
        """Do one thing as soon as no request is in flight."""
        with self._lock:
            if self._client is None:
                self._use(host, port, headers)
            self._errands.append(run)
            self._wake()

    def refresh(self) -> None:
        """Ask everything now."""
        with self._lock:
            for call in self._calls:
                call.due = 0.0
            self._lock.notify()

    def end(self) -> None:
        """Ask no more; an answer that is still to come is not reported."""
        with self._lock:
            self._ended = True
            self._lock.notify()

    def _use(self, host: str, port: int, headers: "dict[str, str]") -> None:
        if self._client is None or self._client.target != (host, port, headers):
            self._client = httpclient.Client(host, port, headers)

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="poll " + self.key)
            self._thread.daemon = True
            self._thread.start()
        self._lock.notify()

    def _run(self) -> None:
        used: "httpclient.Client | None" = None
        while True:
            with self._lock:
                while not self._ended and not self._errands and not self._next_due():
                    self._lock.wait(self._pause())
                if self._ended:
                    break
                errand = self._errands.pop(0) if self._errands else None
                call = self._next_due()
                client = self._client
            assert client is not None
            if used is not None and used is not client:
                used.close()
            used = client
            try:
                if errand:
                    errand(client)
                elif call:
                    self._ask(client, call)
            except Exception as error:
                self._complain("polling %s: %s: %s" % (self.key, type(error).__name__, error))
        if used is not None:
            used.close()

    def _next_due(self) -> "Call | None":
        now = self.host.monotonic()
        due = [call for call in self._calls if call.due <= now]
        return min(due, key=lambda call: call.due) if due else None

    def _pause(self) -> "float | None":
        if not self._calls:
            return None
        return max(0.0, min(call.due for call in self._calls) - self.host.monotonic())

    def _ask(self, client: "httpclient.Client", call: Call) -> None:
        now = self.host.monotonic()
        call.due = now + pulse.pause(call.every, now)
        if call.path == CONNECT:
            answer = client.connect_only(call.limit)
        else:
            answer = client.get(call.path, call.limit, call.body, call.keep)
        if not self._ended:
            self._send(self._frame(call.path, answer), ("http", self.key, call.path))

    def _frame(self, path: str, answer: "httpclient.Answer") -> "Json":
        frame: "Json" = {"t": "http", "at": self.host.now(), "server": self.key, "path": path}
        frame.update(answer.as_json())
        return frame

    def token(self, request: "Json", reply: "Callable[[bool, str | None], None]") -> "Errand":
        """The errand that asks for one generated token."""

        def run(client: "httpclient.Client") -> None:
            limit = min(120.0, float(request.get("limit", 30.0)))
            answer = client.post(request["path"], request["body"].encode("utf-8"), limit, MOST_BODY)
            self._send(self._frame(request["path"], answer), None)
            good = answer.error is None and answer.status == 200
            reply(good, None if good else answer.error or "status %s" % answer.status)

        return run


class Polls(object):
    """Every server that is asked."""

    def __init__(
        self, host: "Host", send: "Callable[[Json, object], None]", complain: "Callable[[str], None]"
    ) -> None:
        self.host = host
        self._send = send
        self._complain = complain
        self._servers: "dict[str, Server]" = {}
        self._replies: "dict[str, Json | None]" = {}

    def poll(self, request: "Json") -> None:
        """Ask a server regularly; replaces what it was asked before."""
        self._server(request["server"]).poll(request, self._headers(request))

    def drop(self, key: str) -> None:
        """Ask this server no more."""
        server = self._servers.pop(key, None)
        if server:
            server.end()

    def refresh(self) -> None:
        """Ask everything now."""
        for server in self._servers.values():
            server.refresh()

    def token(self, request: "Json") -> None:
        """Ask for one token, once: a repeated id is answered with what is known of the first."""
        asked: str = request["id"]
        if asked in self._replies:
            known = self._replies[asked]
            if known:
                self._send(known, None)
            return
        self._replies[asked] = None
        while len(self._replies) > REMEMBERED_TOKENS:
            del self._replies[next(iter(self._replies))]

        def reply(good: bool, error: "str | None") -> None:
            frame: "Json" = {"t": "reply", "at": self.host.now(), "id": asked, "ok": good}
            if error:
                frame["error"] = error
            self._replies[asked] = frame
            self._send(frame, None)

        server = self._server(request["server"])
        headers = self._headers(request)
        server.errand(request["host"], request["port"], headers, server.token(request, reply))

    def _server(self, key: str) -> Server:
        if key not in self._servers:
            self._servers[key] = Server(self.host, key, self._send, self._complain)
        return self._servers[key]

    def _headers(self, request: "Json") -> "dict[str, str]":
        """The server's API key, where the request brings it or names the variable that holds it.

        It goes from this host to this host and into no frame.
        """
        name, key = request.get("key_env"), request.get("key")
        if not name:
            return {}
        key = key or os.environ.get(name) or server_variable(self.host, request["server"], name)
        return {"Authorization": "Bearer " + key} if key else {}


def server_variable(host: "Host", server: str, name: str) -> "str | None":
    """From the environment of the server's main process; a server's key is ``pid:start``."""
    pid = server.partition(":")[0]
    patience = Patience(KEY_LIMIT)  # the main loop asks, and a process that hangs may lock its memory
    try:
        entries = patience.call(procfs.read, "%s/%d/environ" % (host.proc, int(pid))).split(b"\0")
    except (OSError, ValueError):
        return None
    finally:
        patience.close()
    found = [entry for entry in entries if entry.startswith(name.encode() + b"=")]
    return found[0].partition(b"=")[2].decode("latin-1") if found else None
