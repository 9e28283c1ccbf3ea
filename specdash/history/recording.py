"""Recordings: what an agent said, in a file that can be played again.

Gzip of JSON lines. The first is the header; then come the frames as they arrived, each with its time
on the host's clock, and those that were born on this side (``link``, ``tick``). A reader passes over frames
it does not know, stops at the first byte that is damaged, and asks nothing of the file's name.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO, ClassVar, Final

import msgspec

from specdash import __version__, ownfiles
from specdash.errors import SpecdashError
from specdash.history.redaction import Redactor
from specdash.intake.door import admit
from specdash.logs.jsonfile import Unwrapper
from specdash.monitor.frames import AnyFrame, decode
from specdash.sanitise import clean_line
from specdash.wording import why

SCHEMA: Final = 1
SUFFIX: Final = ".specdash.gz"

SYNC_S: Final = 2.0
"""A crash loses at most what came within so many seconds of the host's clock."""
SYNC_BYTES: Final = 256 << 10
_READ: Final = 16 << 10
_LONGEST_LINE: Final = 8 << 20
_GZIP: Final = 16 + zlib.MAX_WBITS
_MAGIC: Final = b"\x1f\x8b"


class RecordingError(SpecdashError):
    """A file cannot be written, or is no recording that this version can play."""

    exit_code: ClassVar[int] = 2


class Header(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="recording"):
    """The first line."""

    schema: int = SCHEMA
    specdash: str = __version__
    host: str
    """The host as the operator named it."""
    started: float
    """Seconds since the epoch on the host's clock, of the first frame."""
    redacted: bool = True


class Recorder:
    """Writes every frame that it is called with: give it to a session as ``on_frame``.

    It never raises after it was made: a full disk ends the recording, not the session, and ``problem``
    says so.
    """

    def __init__(self, path: Path, host: str) -> None:
        """Create the file, for you alone. Raises ``RecordingError`` where it exists or cannot be made."""
        self.path = path
        self.problem: str | None = None
        self.frames = 0
        self._host = host
        self._redactor = Redactor()
        self._zip = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._synced_at: float | None = None
        self._pending = 0
        self._file: BinaryIO | None = _create(path)

    def __call__(self, frame: AnyFrame) -> str | None:
        """Take one frame that has passed the door; says once why the recording ended, if it did."""
        kept = self._redactor.admit(frame)
        if kept is None or self._file is None:
            return None
        if self._synced_at is None:
            self._write(msgspec.json.encode(Header(host=self._host, started=frame.at)))
            self._synced_at = frame.at
        self._write(msgspec.json.encode(kept))
        self.frames += 1
        if abs(frame.at - self._synced_at) >= SYNC_S or self._pending >= SYNC_BYTES:
            self._synced_at, self._pending = frame.at, 0
            self._put(self._zip.flush(zlib.Z_SYNC_FLUSH))
        return self.problem

    def close(self) -> None:
        """Finish the file. Without this it can be played all the same, but for its last seconds."""
        if self._file is not None:
            self._put(self._zip.flush(zlib.Z_FINISH))
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: bytes) -> None:
        self._pending += len(line)
        self._put(self._zip.compress(line + b"\n"))

    def _put(self, data: bytes) -> None:
        if self._file is None or not data:
            return
        try:
            left = memoryview(data)
            while left:  # an almost full disk takes a part
                left = left[self._file.write(left) :]
        except OSError as error:
            self.problem = f"the recording ended: {ownfiles.unwritten(self.path, error)}"
            self._file.close()
            self._file = None


def _create(path: Path) -> BinaryIO:
    """The folder is made only where it is ours: a mistyped path must not make any."""
    try:
        if path.parent == _folder():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RecordingError(
            f"{path} exists already", "name another: a recording never overwrites a file"
        ) from None
    except OSError as error:
        raise RecordingError(f"cannot write {path.name}: {ownfiles.unwritten(path, error)}") from None
    return os.fdopen(descriptor, "wb", buffering=0)


def place(name: str | None, host: str, at: float) -> Path:
    """Where a recording goes: a path with a folder in it is taken as it is said.

    A bare name goes to the state folder, for nothing is written where you happen to stand; without a name
    the file is called after the host and the time.
    """
    if name and (os.sep in name or Path(name).is_absolute()):
        return Path(name).expanduser()
    stamp = datetime.fromtimestamp(at, timezone.utc).strftime("%Y%m%d-%H%M%S")
    plain = re.sub(r"[^A-Za-z0-9.@_-]+", "_", host)
    return _folder() / (name or f"{plain}-{stamp}{SUFFIX}")


def found(name: str) -> Path:
    """A recording by the name that ``place`` was given: that file, else the one in the state folder."""
    kept = _folder() / name
    return kept if os.sep not in name and not Path(name).exists() and kept.is_file() else Path(name)


def _folder() -> Path:
    # Imported here: a reader of recordings needs no state folder.
    import platformdirs

    return platformdirs.user_state_path("specdash") / "recordings"


class Recording:
    """A recording on disk: its header, and its frames as often as they are asked for."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises ``RecordingError`` in one sentence for anything but a recording."""
        self.path = path
        self.header = _header(path)

    def frames(self) -> Iterator[AnyFrame]:
        """Every frame up to the last whole line. They pass the door again: the file may be a stranger's."""
        lines, unwrapper = _lines(self.path), Unwrapper()
        next(lines, None)
        for line in lines:
            frame = _frame(line)
            if frame is not None:
                yield unwrapper.admit(frame)


def _header(path: Path) -> Header:
    nothing = RecordingError(f"{path} is no recording of specdash", "connect --record FILE makes one")
    try:
        first = next(_lines(path), b"")
        schema = msgspec.json.decode(first, type=_AnySchema).schema
    except OSError as error:
        raise RecordingError(f"{path}: {why(error)}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise nothing from None
    if schema > SCHEMA:
        raise RecordingError(
            f"{path} was made by a newer specdash (schema {schema}; this one reads {SCHEMA})",
            "update specdash",
        )
    try:
        header = msgspec.json.decode(first, type=Header)
    except (msgspec.MsgspecError, RecursionError):
        raise nothing from None
    return msgspec.structs.replace(header, host=clean_line(header.host))


def _frame(line: bytes) -> AnyFrame | None:
    """None for another version's frame, or a line that is damaged."""
    try:
        return admit(decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class _AnySchema(msgspec.Struct, tag_field="t", tag="recording"):
    """As much of a header as every version has."""

    schema: int


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines, compressed or not, as far as the bytes can be trusted."""
    with ownfiles.opened(path) as file:
        rest = b""
        for data in _inflated(file):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > _LONGEST_LINE:
                return


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    data = file.read(_READ)
    if not data.startswith(_MAGIC):
        while data:
            yield data
            data = file.read(_READ)
        return
    inflate = zlib.decompressobj(_GZIP)
    while data:
        safe = inflate.copy()
        try:
            yield inflate.decompress(data)
        except zlib.error:
            yield from _salvaged(safe, data)
            return
        data = inflate.unused_data
        if inflate.eof:
            inflate = zlib.decompressobj(_GZIP)
        data = data or file.read(_READ)


def _salvaged(inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What stands before the first damaged byte."""
    for at in range(len(data)):
        try:
            out = inflate.decompress(data[at : at + 1])
        except zlib.error:
            return
        yield out
