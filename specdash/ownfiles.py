"""The one door to the operator's own files: whatever lies under a name, reading it neither hangs nor swells;
and what keeps one from being written is said with the folder where it can be mended.

What is wrong is an ``OSError`` whose words (``specdash.wording.why``) say what lies there and what to do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from specdash.wording import why

MOST: Final = 4 << 20
"""Bytes of a file that a person writes: a hundred times what the longest has."""
_KINDS: Final = (
    (stat.S_ISDIR, errno.EISDIR, "a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "a pipe (FIFO)"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket"),
    (stat.S_ISCHR, errno.EINVAL, "a device"),
    (stat.S_ISBLK, errno.EINVAL, "a device"),
)


def check(path: Path, most: int | None = MOST) -> None:
    """Raises ``OSError`` for what is no plain file of at most ``most`` bytes that may be read.

    ``/dev/null`` is the empty file that it is taken for everywhere.
    """
    found = path.stat()
    for is_kind, number, what in _KINDS:
        if is_kind(found.st_mode) and not os.path.samestat(found, os.stat(os.devnull)):  # noqa: PTH116
            raise OSError(number, f"{what}, and a plain file is wanted there", str(path))
    if not os.access(path, os.R_OK):
        raise OSError(errno.EACCES, "may not be read: mend its rights", str(path))
    if most is not None and found.st_size > most:
        words = f"too large, {found.st_size >> 20} MiB: at most {most >> 20} MiB are read"
        raise OSError(errno.EFBIG, words, str(path))


def trouble(path: Path) -> str | None:
    """Why this file that was asked for cannot be read, with its name; None: it can."""
    try:
        check(path)
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no file {path}"
    except OSError as error:
        return f"{path}: {why(error)}"
    return None


def opened(path: Path) -> BinaryIO:
    """The file, open for reading, whatever its size. Raises ``OSError``."""
    check(path, None)
    return path.open("rb")


def data_of(path: Path, most: int | None = MOST) -> bytes:
    """All its bytes. Raises ``OSError``."""
    check(path, most)
    return path.read_bytes()


def text_of(path: Path) -> str:
    """Its text, without the mark that some editors put before it.

    Raises ``OSError``, ``UnicodeDecodeError``.
    """
    return data_of(path).decode("utf-8-sig")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises what keeps this file from being written in our own words; that it is there, as it comes."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise OSError(error.errno, unwritten(path, error), str(path)) from None


def unwritten(path: Path, error: OSError) -> str:
    """Why this file cannot be written, and what helps."""
    folder = path.parent
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
        return f"there is no folder {folder}: make it, or mount its disk"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path if path.exists() else folder} may not be written: mend its rights"
    words = {
        errno.ENOSPC: f"the disk of {folder} is full: make room there",
        errno.EDQUOT: f"your quota on the disk of {folder} is used up: make room there",
        errno.EROFS: f"the disk of {folder} is mounted read-only: mount it for writing, or choose another",
        errno.EIO: f"the disk of {folder} fails: its kernel log says how",
    }
    return words.get(error.errno or 0, f"{why(error)} ({path})")
