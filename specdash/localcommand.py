"""The first line that a command on this machine prints: a secret, which no word of ours repeats.

Word by word, without a shell, with nothing on its stdin and away from the terminal: it cannot ask there.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Final

from specdash.errors import SpecdashError

COMMAND_S: Final = 20.0
LONGEST: Final = 8192
"""Bytes that a command may say: a secret is one line."""


def first_line(command: Sequence[str], what: str, *, limit_s: float = COMMAND_S) -> str:
    """Run it, in a thread of its own. ``what``: ``an address``, for the words of an error.

    Raises ``SpecdashError`` where it cannot be run, takes too long, fails, or prints nothing or too much.
    """
    name = command[0]
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SpecdashError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    with contextlib.closing(process.stdout or io.BytesIO()) as pipe:
        said, in_time = _read(pipe.fileno(), time.monotonic() + limit_s)
        if not in_time or len(said) > LONGEST:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # with whatever it has started
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:  # it has closed its output, and lives on
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise SpecdashError(f"{name}: no end within {limit_s:.0f} s") from None
    if len(said) > LONGEST:
        raise SpecdashError(f"{name}: it says more than {what}")
    if not in_time:
        raise SpecdashError(f"{name}: no answer within {limit_s:.0f} s")
    lines = said.decode("utf-8", "replace").strip().splitlines()
    if status or not lines:
        raise SpecdashError(f"{name}: exit status {status}, and no {what.rpartition(' ')[2]}")
    return lines[0].strip()


def _read(pipe: int, until: float) -> tuple[bytes, bool]:
    """What comes, to its end or to more than is wanted; and whether that was in time."""
    said = b""
    while len(said) <= LONGEST:
        left = until - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return said, False
        more = os.read(pipe, LONGEST + 1)
        if not more:
            break
        said += more
    return said, True
