"""A server that answers each request with bytes of a test's own, over TLS where it is given a certificate."""

from __future__ import annotations

import datetime
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def framed(*events: bytes, end: bool = True) -> bytes:
    """A whole answer of these events; without an end it breaks off after the last one."""
    pieces = [b"%x\r\n%s\r\n" % (len(event), event) for event in events]
    return HEAD + b"".join(pieces) + (b"0\r\n\r\n" if end else b"")


def token(text: str = "a", finish: str = "null") -> bytes:
    """A chunk of the completions API."""
    return b'data: {"choices":[{"index":0,"text":"%s","finish_reason":%s}]}\n\n' % (
        text.encode(),
        finish.encode(),
    )


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
GOOD = framed(token(), token("b", '"stop"'), USAGE, DONE)


class Scripted:
    """Gives its answers in turn, the last one for ever; ``None`` closes without a word.

    ``close`` numbers answers after which it closes the connection although it said it would not.
    """

    def __init__(
        self, *answers: bytes | None, certificate: Path | None = None, close: Sequence[int] = ()
    ) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._answers, self._close = answers, close
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Scripted:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        try:
            with self._context.wrap_socket(peer, server_side=True) if self._context else peer as link:
                inbox = b""
                while True:
                    head, blank, rest = inbox.partition(b"\r\n\r\n")
                    found = re.search(rb"(?i)content-length: *(\d+)", head)
                    length = int(found[1]) if found else 0
                    if not blank or len(rest) < length:
                        more = link.recv(65536)
                        if not more:
                            return
                        inbox += more
                        continue
                    inbox = rest[length:]
                    number = len(self.requests)
                    self.requests.append(head + blank + rest[:length])
                    answer = self._answers[min(number, len(self._answers) - 1)]
                    if answer is None:
                        return
                    link.sendall(answer)
                    if number in self._close or not answer.endswith(b"0\r\n\r\n"):
                        return
        except OSError:
            return


def certificate(folder: Path) -> Path:
    """A key and a certificate for 127.0.0.1 in one file, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + made.public_bytes(pem)
    )
    return path
