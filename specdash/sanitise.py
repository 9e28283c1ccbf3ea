"""The one door for remote text: what comes out is plain, printable and free of secrets.

Every byte that a host, a log or a server gave us passes here before it reaches a screen, a document or a
file. Nothing that comes out can move a cursor, colour a terminal or reorder a line. It is still text and
never markup: a screen must print it as such.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "<redacted>"
"""What stands where a secret stood."""

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


# A value is what stands behind a name that says "secret": quoted, a list, or up to the next separator.
_VALUE: Final = r"""(?P<value>\[[^\]]*\]|\\?"(?:[^"\\]|\\.)*"?|\\?'(?:[^'\\]|\\.)*'?|[^\s,;&)}\]"']+)"""
# Names of special tokens end in "token" as well; so do counters.
_NOT_SECRET: Final = (
    r"(?!(?:[a-z0-9]+[-_])*(?:eos|bos|pad|unk|sep|mask|cls|image|img|video|audio|new|cached|stop|per|end|start"
    r"|special|next|last|first|draft|bonus|tool|think|num|max|min|total|input|output|prompt|pending|used|"
    r"free|vocab|extra|text|user|assistant|system|boi|eoi|eot|eom)[-_]?token\b)"
)
_NAME: Final = (
    r"(?<![A-Za-z0-9_-])(?P<dashes>--?)?" + _NOT_SECRET + r"(?P<name>(?:[a-z0-9]+[-_])*"
    r"(?:api[-_]?key|access[-_]?key(?:[-_]id)?|secret[-_]?key|private[-_]?key|signing[-_]?key|auth[-_]?key"
    r"|token|password|passwd|passphrase|secrets?|credentials?))"
)
_ASSIGNED: Final = re.compile(_NAME + r"""(?P<between>\\?["']?\s*[:=]\s*)""" + _VALUE, re.IGNORECASE)
_ARGUMENT: Final = re.compile(
    r"(?P<dashes>(?<![A-Za-z0-9_-])--?)(?P<name>(?:[a-z0-9]+[-_])*(?:api[-_]key|token|password|passwd|secret))"
    r"""(?P<between>(?:["']?,\s*|\s+))(?P<value>"[^"]*"?|'[^']*'?|[^\s,\]"'-][^\s,\]"']*)""",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(
    r"""(?P<keep>\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)?)[^\s"',}]+"""
    r"|(?P<scheme>\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}",
    re.IGNORECASE,
)
_KNOWN: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,})"
)
_URL_PASSWORD: Final = re.compile(
    r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)[^\s/@'\"]+(?=@)", re.IGNORECASE
)
_HARMLESS: Final = re.compile(
    r"""\\?["']{0,2}(?:none|null|true|false|[-+]?[\d.]+|<.*|)\\?["']{0,2}""", re.IGNORECASE
)
_GIVEAWAYS: Final = ("pass", "secret", "redential", "authoriz", "bearer ", "sk-", "akia", "xox", "://")
_TOKEN: Final = ("_token", "-token", "token=", "token'", 'token"', "token: '", 'token: "')


def _suspicious(text: str) -> bool:
    # Substring searches, the commonest first: most lines leave here after a microsecond.
    low = text.lower()
    if "ke" in low:
        if "key" in low:
            return True
        if "token" in low:
            for word in _TOKEN:
                if word in low:
                    return True
    if "_" in low and ("hf_" in low or "gh" in low):
        return True
    for word in _GIVEAWAYS:  # noqa: SIM110 - any() costs twice as much here
        if word in low:
            return True
    return False


def _hide_assigned(match: re.Match[str]) -> str:
    value = match["value"]
    if _HARMLESS.fullmatch(value):
        return match[0]
    return match[0][: match.start("value") - match.start()] + REDACTED


def _hide_argument(match: re.Match[str]) -> str:
    return match["dashes"] + match["name"] + match["between"] + REDACTED


def redact(text: str) -> str:
    """Put :data:`REDACTED` where a key, token or password stands; the name that gave it away stays.

    Knows assignments (environment, Python and JSON dictionaries), command line options, headers, passwords
    in URLs, and tokens that are known by their look. ``None``, numbers and special tokens such as
    ``'</s>'`` are not secrets and stay.
    """
    if not _suspicious(text):
        return text
    text = _ASSIGNED.sub(_hide_assigned, text)
    text = _ARGUMENT.sub(_hide_argument, text)
    text = _HEADER.sub(lambda m: (m["keep"] or m["scheme"]) + REDACTED, text)
    text = _URL_PASSWORD.sub(lambda m: m["keep"] + REDACTED, text)
    return _KNOWN.sub(REDACTED, text)


def clean_line(text: str | bytes) -> str:
    """One line, fit to be shown: sanitised and without secrets."""
    return redact(sanitise(text))
