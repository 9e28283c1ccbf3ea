"""Sending a message by apprise, where that is installed. The address is a secret: no word of ours has it.

An address comes from a variable of this machine or from a command on it, when it is first needed; it is kept
in memory alone.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import select
import subprocess
import time
from typing import Any, Protocol

from specdash.errors import SpecdashError
from specdash.profile.document import Notify

COMMAND_S = 20.0
LONGEST = 8192
"""Bytes that a command may say: an address is one line."""
EXTRA = "pip install 'specdash[notify]'"


class Send(Protocol):
    """Sends one message."""

    def __call__(self, rule: Notify, title: str, body: str) -> None:
        """Raises ``SpecdashError`` where it could not be sent, without the address."""


def send(rule: Notify, title: str, body: str) -> None:
    """Send it, and wait until that is done. Raises ``SpecdashError`` with what helps."""
    library, where = _library(), address(rule)
    try:
        post = library.Apprise()
        known = post.add(where)
        taken = known and post.notify(title=title, body=body)
    except Exception as error:  # of a library's many plugins; its words may hold the address
        raise SpecdashError(f"apprise failed ({type(error).__name__})") from None
    if not known:
        raise SpecdashError(
            "the address is none that apprise knows", "its list: github.com/caronc/apprise/wiki"
        )
    if not taken:
        raise SpecdashError("it was not taken", "whoever was asked refused, or could not be reached")


def address(rule: Notify) -> str:
    """Where it goes. Raises ``SpecdashError`` where that is not known."""
    if rule.url_env is not None:
        found = os.environ.get(rule.url_env, "").strip()
        if not found:
            raise SpecdashError(
                f"the variable {rule.url_env} is not set here", "export it before specdash starts"
            )
        return found
    return _told_by(list(rule.url_command or ()))


def _told_by(command: list[str]) -> str:
    """The first line that a command says, in time and of a length that an address can have."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise SpecdashError(f"{command[0]}: {error.strerror}") from None
    with contextlib.closing(process.stdout or io.BytesIO()) as pipe:
        said, in_time = _read(pipe.fileno(), time.monotonic() + COMMAND_S)
        if not in_time or len(said) > LONGEST:
            process.kill()
    status = process.wait()
    if len(said) > LONGEST:
        raise SpecdashError(f"{command[0]}: it says more than an address")
    if not in_time:
        raise SpecdashError(f"{command[0]}: no answer within {COMMAND_S:.0f} s")
    lines = said.decode("utf-8", "replace").strip().splitlines()
    if status or not lines:
        raise SpecdashError(f"{command[0]}: exit status {status}, and no address")
    return lines[0]


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


def _library() -> Any:
    try:
        library = importlib.import_module("apprise")
    except ImportError:
        raise SpecdashError("apprise is not installed", EXTRA) from None
    # It logs addresses: nobody shall find one in a log.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return library
