"""The one door for remote text: what comes out is plain, printable and free of secrets.

Every byte that a host, a log or a server gave us passes here before it reaches a screen, a document or a
file. Nothing that comes out can move a cursor, colour a terminal or reorder a line. It is still text and
never markup: a screen must print it as such.
"""

from __future__ import annotations

import re
from typing import Final

from specdash.secrecy import REDACTED, redact

__all__ = ["REDACTED", "clean_line", "redact", "sanitise"]

# ECMA-48: control strings (OSC, DCS, SOS, PM, APC) end with BEL or ST; one that never ends takes the rest.
_ESCAPES: Final = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|(?=\x1b)|\Z)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|\Z)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-~]?"
)
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
_CONTROLS: Final = bytes(range(32)) + b"\x7f"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_TAB: Final = "    "


def sanitise(text: str | bytes) -> str:
    """Take away whatever a terminal would obey or an eye could not see.

    Escape sequences, control characters (a tab becomes blanks), direction overrides and zero-width
    characters go; bytes that are no UTF-8, and lone surrogates, become U+FFFD. Line ends go too: this is
    for one line.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if text.isascii():
        raw = text.encode()
        if len(raw.translate(None, _CONTROLS)) == len(raw):  # several times faster than a regular expression
            return text
    if "\x1b" in text or not text.isascii():
        text = _ESCAPES.sub("", text)
    text = _SURROGATES.sub("\ufffd", text)
    return _UNPRINTABLE.sub("", text.replace("\t", _TAB))


def clean_line(text: str | bytes) -> str:
    """One line, fit to be shown: sanitised and without secrets."""
    return redact(sanitise(text))
