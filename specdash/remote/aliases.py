"""The names that an ssh configuration gives to hosts, for whoever mistypes one."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from specdash import ownfiles

DEEPEST = 8
"""Files may include files; OpenSSH stops at 16."""
_NEAR = 0.6


def aliases(files: Iterable[Path], *, depth: int = 0) -> Iterator[str]:
    """The names of the ``Host`` lines, without patterns; a file that cannot be read has none."""
    for file in files:
        try:
            text = ownfiles.data_of(file).decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.splitlines():
            key, *values = _words(line)
            if key == "host":
                yield from (name for name in values if not set("*?!") & set(name))
            elif key == "include" and depth < DEEPEST:
                for value in values:
                    yield from aliases(_included(value, file.parent), depth=depth + 1)


def nearest(name: str, files: Iterable[Path], others: Iterable[str] = ()) -> str | None:
    """The alias, or the other name, that was probably meant; None where none is like it, or it is one."""
    known = sorted({*aliases(files), *others})
    if name in known:
        return None
    by_small = {alias.lower(): alias for alias in known}
    close = difflib.get_close_matches(name.lower(), by_small, n=1, cutoff=_NEAR)
    return by_small[close[0]] if close else None


def _words(line: str) -> list[str]:
    """Keyword in small letters and its values: ``Host a b``, ``Host=a``; ``[""]`` for anything else."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = []
    if not words:
        return [""]
    key, equals, value = words[0].partition("=")
    rest = [value, *words[1:]] if equals and value else words[1:]
    return [key.lower(), *(rest[1:] if rest[:1] == ["="] else rest)]


def _included(pattern: str, folder: Path) -> list[Path]:
    """Files that ``Include`` means: relative to the folder of the configuration, with wildcards."""
    path = Path(os.path.expanduser(pattern))  # noqa: PTH111 - Path.expanduser() raises where there is none
    try:
        if path.is_absolute():
            return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        return sorted(folder.glob(pattern))
    except (ValueError, IndexError):  # no pattern at all
        return []
