"""On which line each key of a TOML text stands: no TOML library says it, and a mistake must name it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*(?P<path>(?:"[^"]*"|'[^']*'|[\w.\s-])+?)\s*=\s*(?P<value>.*)$""")
_PART = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[\w-]+))\s*(?:\.|$)""")
_ROW_TOKEN = re.compile(r"""(?P<word>[\w-]+)\s*=(?!=)|"(?:[^"\\]|\\.)*"|'[^']*'|\#.*|[\[\]{}]""")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


def lines_of(text: str) -> dict[str, int]:
    """Dotted key → 1-based line of its first mention. Headers count as keys; so do keys of inline tables."""
    found: dict[str, int] = {}
    table = ""
    depth, quote, key, rows = 0, "", "", 0
    arrays: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        value = line
        if not quote and not depth:
            header, assigned = _HEADER.match(line), _KEY.match(line)
            if header and not line.lstrip().startswith("#"):
                table = _join("", header["path"])
                _note(found, table, number)
                if line.lstrip().startswith("[["):
                    arrays[table] = arrays.get(table, -1) + 1
                    found[f"{table}[{arrays[table]}]"] = number
                continue
            if not assigned:
                continue
            key, value = _join(table, assigned["path"]), assigned["value"]
            _note(found, key, number)
            rows = 0
        for word in re.findall(r"""([\w-]+)\s*=(?!=)""", value if not quote else ""):
            found.setdefault(f"{key}.{word}", number)
        if not quote:
            rows = _note_rows(found, key, value, depth, rows, number)
        depth, quote = _after(value, depth, quote)
    return found


def line_of(lines: Mapping[str, int], key: str) -> int | None:
    """The line of a key, else of the nearest table that it stands in."""
    while key:
        if key in lines:
            return lines[key]
        key = key.rpartition("[")[0] if key.endswith("]") else key.rpartition(".")[0]
    return None


def _note_rows(found: dict[str, int], key: str, value: str, depth: int, rows: int, number: int) -> int:
    """Inline tables of a list, as ``key[0]``, and their keys; returns how many have begun so far."""
    for token in _ROW_TOKEN.finditer(value):
        mark = token[0]
        if mark in "[{":
            if mark == "{" and depth == 1:
                found[f"{key}[{rows}]"] = number
                rows += 1
            depth += 1
        elif mark in "]}":
            depth = max(0, depth - 1)
        elif token["word"] and rows and depth == 2:
            found.setdefault(f"{key}[{rows - 1}].{token['word']}", number)
    return rows


def _note(found: dict[str, int], key: str, number: int) -> None:
    parts = key.split(".")
    for length in range(1, len(parts) + 1):
        found.setdefault(".".join(parts[:length]), number)


def _join(table: str, path: str) -> str:
    parts = [m["double"] or m["single"] or m["bare"] or "" for m in _PART.finditer(path)]
    return ".".join(([table] if table else []) + parts)


def _after(text: str, depth: int, quote: str) -> tuple[int, str]:
    """How deep in brackets, and in which long string, a line leaves us."""
    at = 0
    while at < len(text):
        if quote:
            end = text.find(quote, at)
            if end < 0:
                return depth, quote
            at, quote = end + 3, ""
            continue
        token = _TOKEN.search(text, at)
        if token is None:
            break
        word, at = token[0], token.end()
        if word in ('"""', "'''"):
            quote = word
        elif word in ("[", "{"):
            depth += 1
        elif word in ("]", "}"):
            depth = max(0, depth - 1)
    return depth, quote
