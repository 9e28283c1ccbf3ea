"""More processes than can be looked at: which of them count, and how their rows fit into one frame.

A server may have thousands of descendants (data loaders, tools, a fork bomb). Each costs a descriptor and a
read a second, and a frame that is too long arrives nowhere.
"""

from specdash.agent import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    Json = dict[str, Any]

MOST = 512
"""Processes that are looked at; half of the descriptors that a process usually has."""
MORE_HEADS = 128
LEFT_OUT = "the servers here have more than %d processes: only the first %d are looked at" % (MOST, MOST)
LONGEST_FRAME = 8 * wire.MAX_FRAME
"""A line of 1 MiB would be thrown away on the other side."""
SPARED = ("env", "cgroup", "container", "cwd", "out", "err", "wchan", "maker")
"""What a row can do without, where the process is none of the main ones."""


def choose(
    fresh: "set[int]", heads: "Collection[int]", matched: "Collection[int]", watched: int
) -> "tuple[list[int], bool]":
    """Which new processes to look at, and whether some have to be left out.

    ``heads``, those that begin a server or own GPU memory, come first and find room when all others do not;
    then who matched, then who merely descends.
    """
    first = sorted(fresh.intersection(heads))
    others = sorted(fresh.difference(first), key=lambda pid: (pid not in matched, pid))
    room = max(0, MOST - watched - len(first))
    taken = first[: max(0, MOST + MORE_HEADS - watched)] + others[:room]
    return taken, len(taken) < len(fresh)


def is_long(frame: "Json") -> bool:
    """A frame of these processes may become longer than frames should be."""
    return len(wire.encode(frame)) > wire.MAX_FRAME // 2


def fit(frame: "Json", important: "Collection[int]") -> "Json":
    """Shorten command lines until the frame is as long as frames should be; drop rows if need be."""
    rows = frame["list"]
    for longest in (2048, 512, 128):
        if len(wire.encode(frame)) <= wire.MAX_FRAME:
            return frame
        for row in rows:
            row["argv"] = shorten(row["argv"], longest)
    if len(wire.encode(frame)) > LONGEST_FRAME:
        for row in rows:
            if row["pid"] not in important:
                for name in SPARED:
                    row.pop(name, None)
    while len(wire.encode(frame)) > LONGEST_FRAME and len(rows) > 1:
        rows = frame["list"] = _halved(rows, important)
    return frame


def _halved(rows: "list[Json]", important: "Collection[int]") -> "list[Json]":
    """Half of the rows: the important ones first, the older before the younger."""
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["pid"] not in important, at))
    return [rows[at] for at in sorted(order[: len(rows) // 2])]


def shorten(argv: "list[str]", longest: int) -> "list[str]":
    """The first so many characters of a command line, with an ellipsis where something was cut."""
    room = longest
    for index, argument in enumerate(argv):
        room -= len(argument) + 1
        if room < 0:
            return argv[:index] + [argument[: max(0, room + len(argument))] + "…"]
    return argv
