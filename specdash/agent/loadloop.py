"""A loop over sockets and timers, and connections that stamp what they receive. Of the load generator.

It costs less than asyncio for each wake-up, starts without its imports, and is the same from Python 3.6 on.
Where the kernel tells when a packet came (Linux, no TLS), that is the time of what it held: a loop that is
late then reads late, but does not measure late.
"""

import heapq
import os
import selectors
import signal
import socket
import struct
import time
from collections import deque

from specdash.agent.loadhttp import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Any

READ = 32 * 1024
MOST_WAITING = 512
SO_TIMESTAMPNS = getattr(socket, "SO_TIMESTAMPNS", 35)
STAMP_ROOM = socket.CMSG_SPACE(16) if hasattr(socket, "CMSG_SPACE") else 0
TRUSTED = 5.0
"""Seconds: a stamp that is older, or from the future, is of a clock that was set meanwhile."""
_stamp = struct.Struct("qq").unpack_from


class Timer(object):
    """A call in the future; ``call`` becomes None when it is not wanted any more."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: "Callable[[], None] | None") -> None:
        self.when = when
        self.call = call


class Loop(object):
    """Runs until ``over``. SIGINT and SIGTERM call ``on_stop``."""

    def __init__(self) -> None:
        self.over = False
        self.on_stop: "Callable[[], None]" = self._end
        self.clock_gap = 0.0
        """Wall clock less monotonic clock, as last read."""
        self.idle: "deque[Callable[[], None]]" = deque()
        """What can wait until nothing is to be read: records are written then, and the next requests made."""
        self.lags: "list[float]" = []
        """How late things were read, in seconds, since somebody took them."""
        self._selector = selectors.DefaultSelector()
        self._timers: "list[tuple[float, int, Timer]]" = []
        self._serial = 0
        self._stop_asked = False
        self.compare_clocks()

    def _end(self) -> None:
        self.over = True

    def compare_clocks(self) -> None:
        """Read both clocks: stamps are of the wall clock, which may be set."""
        tries = []
        for _ in range(3):  # whoever is interrupted in between has read a wrong gap, and a long one
            before = time.monotonic()
            wall = time.time()
            after = time.monotonic()
            tries.append((after - before, wall - (before + after) / 2))
        self.clock_gap = min(tries)[1]

    def at(self, when: float, call: "Callable[[], None]") -> Timer:
        """Call once, at this time of the monotonic clock or soon after."""
        timer = Timer(when, call)
        self._serial += 1
        heapq.heappush(self._timers, (when, self._serial, timer))
        return timer

    def watch(self, fd: "Any", events: int, call: "Callable[[], None]") -> None:
        """Call whenever there is something to read (1) or room to write (2)."""
        try:
            self._selector.modify(fd, events, call)
        except KeyError:
            self._selector.register(fd, events, call)

    def forget(self, fd: "Any") -> None:
        """Stop watching."""
        try:
            self._selector.unregister(fd)
        except (KeyError, ValueError):
            pass

    def take_signals(self) -> None:
        """Let SIGINT and SIGTERM wake the loop and end the run in order."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_stop)
        self._wake = (reader, writer)
        self.watch(reader, 1, self._woken)

    def _asked_to_stop(self, _number: int, _frame: "Any") -> None:
        self._stop_asked = True

    def _woken(self) -> None:
        try:
            self._wake[0].recv(64)
        except OSError:
            pass
        if self._stop_asked:
            self._stop_asked = False
            self.on_stop()

    def run(self) -> None:
        """Until ``over``."""
        select = self._selector.select
        timers = self._timers
        clock = time.monotonic
        idle = self.idle
        while not self.over:
            wait = 0.0 if idle else timers[0][0] - clock() if timers else 60.0
            ready = select(wait if wait > 0 else 0)
            for key, _ in ready:
                key.data()
            now = clock()
            while timers and timers[0][0] <= now:
                timer = heapq.heappop(timers)[2]
                call, timer.call = timer.call, None
                if call is not None:
                    call()
            if idle and (not ready or len(idle) > MOST_WAITING):
                idle.popleft()()

    def settle(self) -> None:
        """Do now what was left for an idle moment."""
        while self.idle:
            self.idle.popleft()()


class Connection(object):
    """One connection to the server, plain or TLS.

    Its ``user`` is told ``opened(error, says)``, ``data(bytes, when)``, ``lost(error, says)``.
    """

    def __init__(
        self, loop: Loop, address: "tuple[int, Any]", tls: "ssl.SSLContext | None", name: str
    ) -> None:
        self.user: "Any" = None
        self.fresh = True
        """Nothing has been sent over it yet."""
        self.stamped = False
        self._loop = loop
        self._tls = tls
        self._name = name
        self._out = memoryview(b"")
        self.socket: "Any" = None
        self._address = address

    def open(self, user: "Any") -> None:
        """Begin to connect; ``user.opened`` is told."""
        self.user = user
        try:
            self.socket = socket.socket(self._address[0], socket.SOCK_STREAM)
            self.socket.setblocking(False)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = self.socket.connect_ex(self._address[1])
        except OSError as error:
            code = error.errno or 1
        if code not in (0, 115, 36):  # EINPROGRESS: Linux, macOS
            self._loop.at(0.0, lambda: self._failed(os.strerror(code), code))
            return
        self._loop.watch(self.socket, 2, self._connected)

    def _connected(self) -> None:
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._failed(os.strerror(code), code)
        elif self._tls is not None:
            self._loop.forget(self.socket)
            self.socket = self._tls.wrap_socket(
                self.socket, server_hostname=self._name, do_handshake_on_connect=False
            )
            self._handshake()
        else:
            self._ask_for_stamps()
            self._loop.watch(self.socket, 1, self._read_plain)
            self.user.opened(None, "")

    def _ask_for_stamps(self) -> None:
        if not os.path.exists("/proc/self"):
            return
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self.stamped = True
        except OSError:
            pass

    def _handshake(self) -> None:
        import ssl

        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.watch(self.socket, 1, self._handshake)
        except ssl.SSLWantWriteError:
            self._loop.watch(self.socket, 2, self._handshake)
        except (ssl.SSLError, ssl.CertificateError, OSError) as error:
            self._failed(str(error), 0, "tls")
        else:
            self._loop.watch(self.socket, 1, self._read_tls)
            self.user.opened(None, "")

    def _failed(self, says: str, code: int, kind: "str | None" = None) -> None:
        user, self.user = self.user, None
        self.close()
        if user is not None:
            user.opened(kind or ("refused" if code in (111, 61) else "connect"), says)

    def send(self, data: bytes) -> None:
        """Hand bytes to the kernel, the rest of them as it has room."""
        self.fresh = False
        self._out = memoryview(data)
        self._write()

    def _write(self) -> None:
        secure = self._tls is not None
        try:
            while self._out:
                self._out = self._out[self.socket.send(self._out) :]
        except BlockingIOError:
            pass
        except OSError as error:
            if not (secure and type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError")):
                self._lost(str(error))
                return
        read = self._read_tls if secure else self._read_plain
        self._loop.watch(self.socket, 3 if self._out else 1, self._both if self._out else read)

    def _both(self) -> None:
        self._write()
        if self.socket is not None:
            (self._read_tls if self._tls is not None else self._read_plain)()

    def _read_plain(self) -> None:
        try:
            if self.stamped:
                data, notes, _, _ = self.socket.recvmsg(READ, STAMP_ROOM)
            else:
                data, notes = self.socket.recv(READ), ()
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(str(error))
            return
        now = when = time.monotonic()
        if notes and data:
            seconds, nanos = _stamp(notes[0][2])
            stamp = seconds + nanos * 1e-9 - self._loop.clock_gap
            if 0.0 <= now - stamp < TRUSTED:
                when = stamp
                self._loop.lags.append(now - stamp)
        self._pass(data, when)

    def _read_tls(self) -> None:
        import ssl

        if self.socket is None:
            return
        pieces: "list[bytes]" = []
        try:
            while len(pieces) < 16:
                pieces.append(self.socket.recv(READ))
                if not pieces[-1]:
                    break
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            self._lost(str(error))
            return
        when = time.monotonic()
        for data in pieces:
            if self.socket is not None:
                self._pass(data, when)
        if len(pieces) == 16 and self.socket is not None:
            self._loop.at(0.0, self._read_tls)  # what TLS holds does not wake the selector

    def _pass(self, data: bytes, when: float) -> None:
        if not data:
            self._lost("")
            return
        user = self.user
        if user is None:
            self.close()  # nobody has asked
            return
        try:
            user.data(data, when)
        except Malformed as error:
            self._lost(str(error), "protocol")

    def _lost(self, says: str, kind: str = "cut") -> None:
        user, self.user = self.user, None
        self.close()
        if user is not None:
            user.lost(kind, says)

    @property
    def closed(self) -> bool:
        """It is of no use any more."""
        return self.socket is None

    def close(self) -> None:
        """Close at once; a server that streams to us learns of it."""
        if self.socket is not None:
            self._loop.forget(self.socket)
            self.socket.close()
            self.socket = None
