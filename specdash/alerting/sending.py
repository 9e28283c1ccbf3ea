"""Sending a message by apprise, where that is installed. The address is a secret: no word of ours has it.

An address comes from a variable of this machine or from a command on it, when it is first needed; it is kept
in memory alone.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, Protocol

from specdash.errors import SpecdashError
from specdash.localcommand import COMMAND_S, first_line
from specdash.profile.document import Notify

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
        words = f"apprise failed ({type(error).__name__})"
        raise SpecdashError(words, "is the address whole? specdash notify --test tries it") from None
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
    return first_line(rule.url_command or (), "an address", limit_s=COMMAND_S)


def _library() -> Any:
    try:
        library = importlib.import_module("apprise")
    except ImportError:
        raise SpecdashError("apprise is not installed", EXTRA) from None
    # It logs addresses: nobody shall find one in a log.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    return library
