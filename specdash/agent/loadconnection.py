"""One connection to the server, plain or TLS, that stamps what it receives. Of the load generator.

Where the kernel tells when a packet came (Linux, no TLS), that is the time of what it held: a loop that is
late then reads late, but does not measure late.
"""

import os
import socket
import struct
import time

from specdash.agent.loadhttp import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from typing import Any

    from specdash.agent.loadloop import Loop

READ = 32 * 1024
SO_TIMESTAMPNS = getattr(socket, "SO_TIMESTAMPNS", 35)
STAMP_ROOM = socket.CMSG_SPACE(16) if hasattr(socket, "CMSG_SPACE") else 0
TRUSTED = 5.0
"""Seconds: a stamp that is older, or from the future, is of a clock that was set meanwhile."""
_stamp = struct.Struct("qq").unpack_from


class Connection(object):
    """One connection to the server, plain or TLS.

    Its ``user`` is told ``opened(error, says)``, ``data(bytes, when)``, ``lost(error, says)``.
    """

    def __init__(
        self, loop: "Loop", address: "tuple[int, Any]", tls: "ssl.SSLContext | None", name: str
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
