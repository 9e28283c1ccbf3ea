"""Paths as they travel: whatever a file is called, its name arrives whole, on one line, and leads back to it.

A name on Linux is bytes: it may hold line ends, escape codes and what is no UTF-8, none of which survives a
screen. Such bytes are written ``\\xNN``, as Python's ``repr`` and ``ls -b`` would; a name without them
stays as it is. Used on both sides of the link.
"""

import re

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_LITERAL = re.compile(r"\\(?=x[0-9a-f]{2})")
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f")
"""Letters to Unicode, and nothing to the eye."""


def shown(path: str) -> str:
    """A path of the file system as it is sent and shown."""
    if path.isprintable() and "\\x" not in path and not _UNSEEN.intersection(path):
        return path
    path = _LITERAL.sub(r"\\x5c", path)
    return "".join(c if c.isprintable() and c not in _UNSEEN else _escape(c) for c in path)


def real(path: str) -> str:
    """The path of the file system that ``shown`` was given."""
    if "\\x" not in path:
        return path
    raw = path.encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(lambda found: bytes([int(found.group(1), 16)]), raw).decode(
        "utf-8", "surrogateescape"
    )


def _escape(character: str) -> str:
    return "".join("\\x%02x" % byte for byte in character.encode("utf-8", "surrogateescape"))
