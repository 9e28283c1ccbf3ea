"""Where in a grammar's text the key stands that an error is about: whoever writes one wants the line."""

from __future__ import annotations

import re


def place(text: str, words: str) -> str:
    """The place as ``: line 12``; nothing where it cannot be told.

    ``words`` is the error: msgspec's path (``$.marker[2].kind``), or our own ``marker 'a': match: …``.
    """
    lines = text.splitlines()
    path = re.search(r"`\$\.?([^`]*)`", words)
    unknown = re.search(r"unknown field `(\w+)`", words)
    if path:
        start, key = _by_path(lines, path[1])
    else:
        start, key = _by_name(lines, words)
    key = unknown[1] if unknown else key
    if key is None:
        return f": line {start + 1}" if start else ""
    at = next((at for at in range(start, len(lines)) if re.match(rf"\s*{key}\b", lines[at])), start)
    return f": line {at + 1}"


def _by_path(lines: list[str], path: str) -> tuple[int, str | None]:
    """``marker[2].kind`` is a key of the third such table; ``lines.prefix`` the key of a table."""
    inside = re.match(r"(\w+)\[(\d+)\](?:\.(\w+))?", path)
    if inside is None:
        return 0, path.rpartition(".")[2].partition("[")[0] or None
    heads = [at for at, line in enumerate(lines) if line.strip() == f"[[{inside[1]}]]"]
    number = int(inside[2])
    return (heads[number], inside[3]) if number < len(heads) else (0, None)


def _by_name(lines: list[str], words: str) -> tuple[int, str | None]:
    """``marker 'a': match: …`` is a key of the marker with that name; ``lines.prefix: …`` a key."""
    named = re.match(r"marker '([^']*)'(?:: (match)\b)?", words)
    if named is None:
        plain = re.match(r"(?:\w+\.)?(\w+)(?:\[\d+\])?: ", words)
        return 0, plain[1] if plain else None
    wanted = re.compile(rf"name *= *[\"']{re.escape(named[1])}[\"']")
    return next((at for at, line in enumerate(lines) if wanted.match(line)), 0), named[2]
