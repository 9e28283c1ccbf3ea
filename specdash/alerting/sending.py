"""Sending a message by apprise, where that is installed. The address is a secret: no word of ours has it.

An address comes from a variable of this machine or from a command on it, when it is first needed; it is kept
in memory alone.
"""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
from typing import Any, Protocol

from specdash.errors import SpecdashError
from specdash.profile import Notify

COMMAND_S = 20.0
EXTRA = "pip install 'specdash[notify]'"


class Send(Protocol):
    """Sends one message."""

    def __call__(self, rule: Notify, title: str, body: str) -> None:
        """Raises ``SpecdashError`` where it could not be sent, without the address."""


def send(rule: Notify, title: str, body: str) -> None:
    """Send it, and wait until that is done. Raises ``SpecdashError`` with what helps."""
    post = _library().Apprise()
    if not post.add(address(rule)):
        raise SpecdashError(
            "the address is none that apprise knows", "its list: github.com/caronc/apprise/wiki"
        )
    if not post.notify(title=title, body=body):
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
    command = list(rule.url_command or ())
    try:
        ended = subprocess.run(
            command, capture_output=True, timeout=COMMAND_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        what = "no answer" if isinstance(error, subprocess.TimeoutExpired) else error.strerror
        raise SpecdashError(f"{command[0]}: {what}") from None
    lines = ended.stdout.decode("utf-8", "replace").strip().splitlines()
    if ended.returncode or not lines:
        raise SpecdashError(f"{command[0]}: exit status {ended.returncode}, and no address")
    return lines[0]


def _library() -> Any:
    try:
        library = importlib.import_module("apprise")
    except ImportError:
        raise SpecdashError("apprise is not installed", EXTRA) from None
    # It logs addresses: nobody shall find one in a log.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return library
