"""What gives a secret away, and taking it out: the second half of the door (see ``specdash.sanitise``).

Every search here costs time in proportion to the length of the line, whatever the line is: nothing begins
at a place that another try has already walked over, and what is bracketed is looked at only so far.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "<redacted>"
"""What stands where a secret stood."""

# "token" ends other words, too ("detoken"): it must begin a word, or a part of aCamelToken.
_NAME: Final = (
    r"(?P<name>api[-_. ]?keys?|access[-_]?key(?:[-_]id)?|(?:secret|private|signing|auth)[-_]?key"
    r"|(?:(?<![a-z0-9])|(?-i:(?<=[a-z0-9])(?=T)))token"
    r"|password|passwd|passphrase|secrets?|credentials?)"
)
# A value is quoted, in brackets, a call, or goes up to the next separator.
_VALUE: Final = (
    r"""(?P<value>\[[^\]]{0,4000}\]|\{[^}]{0,4000}\}|[\w.]{0,60}\([^)]{0,4000}\)"""
    r"""|b?\\?"(?:[^"\\]|\\.)*"?|b?\\?'(?:[^'\\]|\\.)*'?|[^\s,;&)}\]"']+)"""
)
_ASSIGNED: Final = re.compile(_NAME + r"""\\?["']?\s*[:=]\s*""" + _VALUE, re.IGNORECASE)
# The first word after the option, and further ones that look like keys: vLLM takes several.
_ARGUMENT: Final = re.compile(
    r"""(?P<keep>(?<![A-Za-z0-9_-])--?(?:[a-z0-9]+[-_])*"""
    r"""(?:api[-_]keys?|token|password|passwd|passphrase|secret(?:[-_]key)?|credentials?|basic[-_]auth)"""
    r"""(?:["']?,\s*|\s+))(?:"[^"]*"?|'[^']*'?|[^\s,\]"'-][^\s,\]"']*)"""
    r"""(?:(?:,\s*|\s+)["']?(?=[A-Za-z_.~+/=-]{0,200}\d)[^\s,\]"'-][^\s,\]"']{7,}["']?)*""",
    re.IGNORECASE,
)
_ENVIRONMENT: Final = re.compile(
    r"""(?<![A-Za-z0-9_])(?P<name>[A-Z][A-Z0-9_]{0,80}_(?:KEY|PWD|PASS))["']?\s*[:=]\s*""" + _VALUE
)
_HEADER: Final = re.compile(
    r"""(?P<keep>\b(?:(?:proxy-)?authorization|(?:set-)?cookie)["']?\s*[:=]\s*["']?"""
    r"""(?:(?:bearer|basic|token)\s+)?)[^\s"',}]+"""
    r"|(?P<scheme>\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}",
    re.IGNORECASE,
)
_QUERY: Final = re.compile(r"""(?P<keep>[?&](?:key|sig|signature|auth|code)=)[^\s&"'#]+""", re.IGNORECASE)
# From "://" on: a search for the scheme in front of it costs the square of a long hyphenated word.
_URL: Final = re.compile(
    r"""(?P<keep>://[^\s/:@'"]*:)[^\s/@'"]+(?=@)|(?P<web>\bhttps?://)[^\s/:@'"?#]{8,255}(?=@)""",
    re.IGNORECASE,
)
_KNOWN: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?<!-)eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
)
_HARMLESS: Final = re.compile(
    r"""\\?["']{0,2}(?:none|null|true|false|[-+]?[\d.]+|<.*|\[\]|\{\}|\(\)|)\\?["']{0,2}""", re.IGNORECASE
)
_SPECIAL: Final = re.compile(
    r"(?:^|[^A-Za-z0-9])(?:eos|bos|pad|unk|sep|mask|cls|image|img|video|audio|new|cached|stop|per|end|start"
    r"|special|next|last|first|draft|bonus|tool|think|num|max|min|total|input|output|prompt|pending|used"
    r"|free|vocab|extra|text|user|assistant|system|boi|eoi|eot|eom)[-_]\Z",
    re.IGNORECASE,
)
"""In front of ``token``: a special token of a vocabulary, or a counter."""

_GIVEAWAYS: Final = (
    *"pass secret redential authoriz sk- akia xox :// _pwd cookie sig= signature= code=".split(),
    *("auth=", "eyj", "basic", "bearer "),
)
_TOKEN: Final = re.compile(r"""token\\?["']?\s*[:=]\s*(?!\s|[\d.]+(?:[\s,;)}\]]|\Z))|-token["']?[\s,]""")
"""Counters of tokens stand in every other line of a serving log; they have a number behind them."""


def _suspicious(text: str) -> bool:
    # Substring searches, the commonest first: most lines leave here after a microsecond.
    low = text.lower()
    if "ke" in low and ("key" in low or ("token" in low and _TOKEN.search(low) is not None)):
        return True
    if "_" in low and ("hf_" in low or "gh" in low):
        return True
    for word in _GIVEAWAYS:  # noqa: SIM110 - any() costs twice as much here
        if word in low:
            return True
    return False


def _hide_assigned(match: re.Match[str]) -> str:
    if _HARMLESS.fullmatch(match["value"]):
        return match[0]
    begins = match.start()
    if match["name"].lower() == "token" and _SPECIAL.search(match.string, max(0, begins - 16), begins):
        return match[0]
    return match[0][: match.start("value") - begins] + REDACTED


def _hide_url(match: re.Match[str]) -> str:
    return (match["keep"] or match["web"]) + REDACTED


def redact(text: str) -> str:
    """Put :data:`REDACTED` where a key, token or password stands; the name that gave it away stays.

    Knows assignments (environment, Python and JSON dictionaries), command line options, headers, queries
    and passwords in URLs, and tokens that are known by their look. ``None``, numbers and special tokens
    such as ``'</s>'`` are not secrets and stay.
    """
    if not _suspicious(text):
        return text
    text = _ASSIGNED.sub(_hide_assigned, text)
    text = _ENVIRONMENT.sub(_hide_assigned, text)
    text = _ARGUMENT.sub(lambda m: m["keep"] + REDACTED, text)
    text = _HEADER.sub(lambda m: (m["keep"] or m["scheme"]) + REDACTED, text)
    text = _QUERY.sub(lambda m: m["keep"] + REDACTED, text)
    text = _URL.sub(_hide_url, text)
    return _KNOWN.sub(REDACTED, text)
