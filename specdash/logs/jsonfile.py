r"""Docker's own log files: each line of the server is wrapped in a record, and here it is taken out again.

What docker's log driver ``json-file`` writes (moby, daemon/logger/jsonfilelog and jsonlog):
``{"log":"a line\n","stream":"stderr","attrs":{…},"time":"2026-11-29T22:31:04.1Z"}``, one a line. A line
longer than 16 KiB, and a bar, comes in several records; all but the last have no ``\n`` in their text.

Whatever reads a log is given the server's lines alone, as ``docker logs`` prints them; so line numbers are
those of ``docker logs``, too. A file is known by its first records, not by its name: a copy is read alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from specdash.monitor.frames import AnyFrame, Glimpse, Log

replace = msgspec.structs.replace

LONGEST: Final = 1 << 20
"""Bytes of a record: sixteen thousand characters, each escaped, are a tenth of it."""
LOOKED_AT: Final = 8
"""So many first lines are looked at: a full disk may have cut some of them."""

_BEGIN: Final = b'{"log":"'
_BEGINNINGS: Final = (_BEGIN, b'{"stream":"', b'{"time":"')
"""Of a record; an empty text is left out."""
_HALF_ESCAPE: Final = re.compile(rb"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")


class _Record(msgspec.Struct):
    time: str
    stream: Literal["stdout", "stderr"] | None = None
    log: str = ""


_decoder: Final = msgspec.json.Decoder(_Record)
_text: Final = msgspec.json.Decoder(str)


class JsonFile:
    """The bytes of one file, in order. A file of any other kind passes as it is."""

    def __init__(self) -> None:
        self._wrapped: bool | None = None
        """None: not known yet."""
        self._rest = b""
        """A record that is not whole yet."""
        self._open: str | None = None
        """Whose line has no end yet."""

    def feed(self, raw: bytes) -> bytes:
        """The next bytes of the file; the server's own bytes that are in them."""
        if self._wrapped is False:
            return raw
        data = self._rest + raw
        self._rest = b""
        if self._wrapped is None:
            self._wrapped = _looks_wrapped(data)
            if self._wrapped is None:
                self._rest = data
                return b""
            if not self._wrapped:
                return data
        *lines, rest = data.split(b"\n")
        out = [self._line(line) for line in lines]
        if len(rest) > LONGEST:
            out.append(rest)
        else:
            self._rest = rest
        return b"".join(out)

    def close(self) -> bytes:
        """The file ends here: what there is of a record that was cut off."""
        rest, self._rest = self._rest, b""
        if self._wrapped is None and _record(rest) is None:
            return rest
        return self._line(rest) if rest else b""

    def _line(self, line: bytes) -> bytes:
        record = _record(line)
        if record is not None:
            return self._said(record.stream or "stdout", record.log.encode("utf-8", "replace"))
        # A full disk or a lost machine has cut a record, and the next one stands behind it in the same line.
        at = line.rfind(_BEGIN)
        if at > 0 and (record := _record(line[at:])) is not None:
            return self._alone(_cut_record(line[:at])) + self._said(
                record.stream or "stdout", record.log.encode()
            )
        return self._alone(_cut_record(line))

    def _said(self, stream: str, text: bytes) -> bytes:
        """A record's text. Where the other stream has a line open, that ends: nothing is kept waiting."""
        before = b"\n" if self._open not in (None, stream) else b""
        self._open = None if text.endswith(b"\n") else stream if text else self._open
        return before + text

    def _alone(self, text: bytes) -> bytes:
        """What is no whole record stands in a line of its own."""
        before = b"\n" if self._open else b""
        self._open = None
        return before + text.rstrip(b"\n") + b"\n"


class Unwrapper:
    """The logs of one host: frames with records in them become frames with the server's own lines.

    ``offset`` plus the length stays the place in the file up to which it was read; ``size`` is the file's.
    """

    def __init__(self) -> None:
        self._files: dict[str, JsonFile] = {}

    def admit(self, frame: AnyFrame) -> AnyFrame:
        """The same frame, or the one that stands for it."""
        if isinstance(frame, Glimpse):
            file = JsonFile()
            return _with(frame, file.feed(frame.raw) or frame.raw)
        if not isinstance(frame, Log):
            return frame
        if frame.break_ is not None or frame.path not in self._files:
            self._files[frame.path] = JsonFile()
        raw = frame.raw
        shown = self._files[frame.path].feed(raw)
        if shown == raw:
            return frame
        return _with(replace(frame, offset=max(0, frame.offset + len(raw) - len(shown))), shown)


def unwrapped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A file read piece by piece, as the server wrote it."""
    file = JsonFile()
    for piece in pieces:
        yield file.feed(piece)
    yield file.close()


def _looks_wrapped(data: bytes) -> bool | None:
    """Whether these first bytes are docker's; None: too few to tell."""
    if not any(data[: len(begin)] == begin[: len(data)] for begin in _BEGINNINGS):
        return False
    lines = data.split(b"\n")[:-1]
    if any(_record(line) is not None for line in lines[:LOOKED_AT]):
        return True
    return False if len(lines) >= LOOKED_AT or len(data) > LONGEST else None


def _record(line: bytes) -> _Record | None:
    if not line.startswith(_BEGINNINGS):
        return None
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _cut_record(line: bytes) -> bytes:
    """As much of a record's text as is there; a line of another kind as it is."""
    if not line.startswith(_BEGIN):
        return line
    text = line[len(_BEGIN) :].rstrip(b"\0\r")
    if (half := _HALF_ESCAPE.search(text)) is not None:
        text = text[: half.start(1)]
    try:
        return _text.decode(b'"' + text + b'"').encode()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return line


def _with(frame: Log | Glimpse, raw: bytes) -> Log | Glimpse:
    try:
        return replace(frame, text=raw.decode(), data=None)
    except UnicodeDecodeError:
        return replace(frame, text=None, data=raw)
