"""Log files as pieces of bytes: plain, compressed or from stdin, whatever their size."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from specdash.errors import SpecdashError

PIECE: Final = 1 << 20
"""Bytes read at once: memory does not grow with the file."""

STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_OTHER_PACKED: Final = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_TEXT_CONTROLS: Final = bytes(range(7, 14)) + b"\x1b\x00"
_BINARY_SHARE: Final = 0.1


class LogFileError(SpecdashError):
    """A log that cannot be read, or is none; the sentence names the file."""


def pieces(name: str) -> Iterator[bytes]:
    """The bytes of a log in order; ``-`` is stdin, gzip is unpacked.

    Raises ``LogFileError`` where there is no such file, it may not be read, or it is no text.
    """
    try:
        _refuse_device(name)
        with _open(name) as file:
            first = file.read(PIECE)
            _refuse_binary(name, first[:65536])
            while first:
                yield first
                first = file.read(PIECE)
    except FileNotFoundError:
        raise LogFileError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise LogFileError(f"{name} is a directory", "name the log file in it") from None
    except PermissionError:
        raise LogFileError(f"{name}: may not be read", "try it as another user or with sudo") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise LogFileError(f"{name}: its compressed data is damaged or cut off") from None
    except OSError as error:
        raise LogFileError(f"{name}: {error.strerror or error}") from None


def silent_since(name: str) -> float | None:
    """When this file was last written to (seconds since the epoch); None for what is no file of its own."""
    if name == STDIN:
        return None
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime if stat.S_ISREG(status.st_mode) else None


def waits_for_writer(name: str) -> bool:
    """A pipe in the file system: reading it waits until somebody writes. Not that of ``<(command)``."""
    path = Path(name)
    return name != STDIN and path.is_fifo() and path.resolve().is_fifo()


def _refuse_device(name: str) -> None:
    """A device has no end; a pipe has one, and a terminal has ctrl+d."""
    if not name:
        raise LogFileError("an empty name is no log file")
    if name in (STDIN, os.devnull):
        return
    mode = Path(name).stat().st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not _is_terminal(name)):
        raise LogFileError(f"{name} is a device, not a log file")


def _is_terminal(name: str) -> bool:
    with Path(name).open("rb", buffering=0) as file:
        return file.isatty()


def _open(name: str) -> BinaryIO:
    if name == STDIN:
        return cast("BinaryIO", open(sys.stdin.fileno(), "rb", closefd=False))
    file = Path(name).open("rb")  # noqa: SIM115 - the caller closes it
    magic = file.peek(2)[:2] if file.seekable() else b""
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if magic == _GZIP else file


def _refuse_binary(name: str, head: bytes) -> None:
    for magic, packer in _OTHER_PACKED.items():
        if head.startswith(magic):
            raise LogFileError(
                f"{name} is packed with {packer}", "unpack it first, or pipe it: … | specdash log -"
            )
    if head.startswith(_WIDE):
        raise LogFileError(f"{name} is UTF-16 text", "convert it to UTF-8 first")
    odd = sum(byte < 32 for byte in head.translate(None, _TEXT_CONTROLS))
    if head.startswith((b"\x7fELF", b"\x93NUMPY")) or odd > len(head) * _BINARY_SHARE:
        raise LogFileError(f"{name} is not a text file")
