"""A parser's sentence, for a person who writes TOML: what is wrong, and how it is written instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final

_PLACE: Final = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
_NO_QUOTE: Final = "the closing quote of a text is missing"
_SYNTAX: Final = (
    (r"Invalid statement", "write [TABLE] or KEY = VALUE"),
    (r"Invalid value", "no value that TOML knows: text stands in quotes, true and false in lower case"),
    (r"Expected newline or end of document.*", "too much behind the value: text stands in quotes"),
    (r"Cannot overwrite a value", "this stands there twice: keep one"),
    (r"Duplicate inline table key .*", "a key stands there twice: keep one"),
    (
        r"Unescaped '\\' in a string",
        r"""a \ in a text: write \\, or put the text in ' instead of " """.rstrip(),
    ),
    (r"Illegal character '\\[rn]+'", _NO_QUOTE),
    (r"""Unterminated string|Expected "'+"|Expected '"+'""", _NO_QUOTE),
)
"""What tomli says, and what it means."""
_TWICE: Final = re.compile(r"Cannot declare (?P<parts>\(.*\)) twice")

_EXPECTED: Final = re.compile(r"expected (?P<wanted>\S+(?: \| \S+)*), got (?P<got>\S+)", re.IGNORECASE)
_KINDS: Final[Mapping[str, str]] = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_FORMS: Final[Mapping[str, str]] = {"str": " in quotes", "array": " in [ ]", "object": " in { }"}
_BOUNDS: Final = re.compile(r"expected \w+(?: \| null)* (?P<sign>[<>]=?) (?P<bound>[\d.]+)", re.IGNORECASE)
_SIGNS: Final[Mapping[str, str]] = {
    ">=": "at least {}",
    ">": "more than {}",
    "<=": "at most {}",
    "<": "less than {}",
}
_PATTERNS: Final = (
    ("^(process", "write process, systemd:UNIT, docker:NAME or tmux:SESSION"),
    ("A-Za-z_", "write the name of a variable: letters, digits and _"),
    ("[0-5]", "write hours as 22:00-07:00"),
    ("(s|m|h)", "write a time as 30s, 5m or 2h"),
)
"""A part of a pattern of ``specdash.profile.document``, and what it asks for."""


def syntax(message: str, text: str) -> tuple[int, str]:
    """What tomli says of this text: the line, counted from 1, and what is wrong there."""
    place = _PLACE.search(message)
    line = int(place["line"]) if place and place["line"] else len(text.splitlines()) or 1
    return line, _syntax(_PLACE.sub("", message))


def _syntax(message: str) -> str:
    twice = _TWICE.fullmatch(message)
    if twice:
        return f"[{'.'.join(ast.literal_eval(twice['parts']))}] stands there twice: keep one"
    for pattern, says in _SYNTAX:
        if re.fullmatch(pattern, message):
            return says
    return f"not TOML: {message}"


def types(message: str) -> str:
    """A sentence of msgspec, without its place."""
    plain = message.replace("Object missing required field", "missing").replace("`", "")
    plain = plain.replace("Object contains unknown field", "unknown key")
    plain = plain.replace("Invalid enum value", "no such word:")
    if "length >= 1" in plain:
        return "is empty: fill it"
    if "matching regex" in plain:
        return next((says for part, says in _PATTERNS if part in plain), plain)
    bounds, expected = _BOUNDS.search(plain), _EXPECTED.search(plain)
    if bounds:
        return f"write {_SIGNS[bounds['sign']].format(bounds['bound'].removesuffix('.0'))}"
    if expected:
        return _expected(expected["wanted"].removesuffix(" | null"), expected["got"])
    return plain[:1].lower() + plain[1:]


def _expected(wanted: str, got: str) -> str:
    form = _FORMS.get(wanted, " without quotes" if got == "str" else "")
    return f"{_KINDS.get(got, got)} where {_KINDS.get(wanted, wanted)}{form} is expected"
