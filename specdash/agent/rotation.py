"""A log among its rotated siblings: where a reader goes on, whatever was renamed, copied or cut meanwhile."""

import os
import re

from specdash.agent.tailfile import Opened, Refused, identity, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RENAMED_MEANWHILE = 5
"""How often a search begins again because the files were renamed while it went on."""
ROTATED = re.compile(r"[._-](?:\d[\d._T:-]*|old|prev|bak)$")
"""What rotation appends to a name, uncompressed; ``server.log.err`` is another log."""


def siblings(path: str) -> "list[str]":
    """The rotated versions of a log that lie beside it."""
    folder, base = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if name.startswith(base) and ROTATED.match(name[len(base) :])
    ]


def _was_read(name: str, key: str, passed: "tuple[tuple[str, bytes], ...]") -> bool:
    heads = [head for identity_, head in passed if identity_ == key]
    if not heads:
        return False
    try:
        opened = open_file(name)
        return any(opened.begins_with(head) for head in heads)
    except Refused:
        return True


def _turn(name: str, path: str) -> "tuple[int, int]":
    """A place in the row of rotation: ``x.log.2`` came before ``x.log.1``, ``x.log`` is the last."""
    if name == path:
        return 1, 1
    digits = name[len(path) + 1 :]
    return (1, -int(digits)) if digits.isdigit() and len(digits) < 6 else (0, 0)


def find(path: str, cursor: "dict[str, Any]") -> "Opened | None":
    """The file that a cursor was made for, wherever rotation has put it, opened at the cursor's offset.

    Else a copy of it: rotation by copying leaves the bytes there and cuts the file itself to nothing.
    """
    for _ in range(RENAMED_MEANWHILE):
        row = _row(path)
        for exactly in (True, False):
            opened = _find_among([name for name, _ in row], path, cursor, exactly)
            if opened is not None:
                return opened
        if _row(path) == row:
            break
    return None


def _row(path: str) -> "list[tuple[str, str]]":
    """The log and its siblings, each with the file that has this name now."""
    return [(name, _identity_of(name)) for name in [path] + siblings(path)]


def _identity_of(name: str) -> str:
    try:
        return identity(os.stat(name))
    except OSError:
        return ""


def _find_among(names: "list[str]", path: str, cursor: "dict[str, Any]", exactly: bool) -> "Opened | None":
    for name in names:
        try:
            opened = open_file(name)
        except Refused as error:
            if name == path and str(error) != "no such file":
                raise
            continue
        if (opened.identity == cursor["file"]) == exactly and opened.goes_on(cursor):
            opened.path = path
            return opened
    return None


def successor(file: Opened, mine: os.stat_result) -> "Opened | None":
    """The file written after this one, where another file has taken its name and is not empty.

    A reader that was away may have missed whole files: of the siblings not older than this file the
    oldest is next.
    """
    try:
        current = os.stat(file.path)
        if (current.st_dev, current.st_ino) == (mine.st_dev, mine.st_ino) or not current.st_size:
            return None
    except OSError:
        return None
    passed = (file.passed + ((file.identity, file.head),))[-64:]
    places, ages = {}, {}
    for name in siblings(file.path) + [file.path]:
        try:
            status = os.stat(name)
        except OSError:
            continue
        ages[name] = (status.st_mtime_ns, _turn(name, file.path))
        places[identity(status)] = name
    # Files that were rotated within one tick of the kernel's clock are told apart by their numbers.
    own = ages.get(places.get(file.identity, ""), (mine.st_mtime_ns, (0, 0)))
    later = [name for key, name in places.items() if ages[name] > own and not _was_read(name, key, passed)]
    for name in sorted(later, key=lambda name: (ages[name], name)) or [file.path]:
        try:
            following = open_file(name)
        except Refused:
            continue
        if places.get(following.identity) != name:
            return None  # renamed meanwhile: look again
        following.path = file.path
        following.passed = passed
        return following
    return None
