"""What the agent's acting verbs answer, typed. Unknown fields are ignored, new ones have defaults.

The verbs are described in ``specdash.agent.acts``.
"""

from __future__ import annotations

import base64
from typing import Literal

import msgspec

from specdash.operations.work import Target


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class Parent(Answer, frozen=True, kw_only=True):
    """Who must take a dead process's exit status."""

    pid: int
    comm: str = ""


class Row(Answer, frozen=True, kw_only=True):
    """A process."""

    pid: int
    start: int
    ppid: int = 0
    sid: int = 0
    pgid: int = 0
    uid: int = 0
    user: str = ""
    state: str = "?"
    comm: str = ""
    title: str = ""
    """Its command line or title, in one line."""
    wchan: str | None = None
    zombie_parent: Parent | None = None
    """Of a dead process that nobody has buried: whose task that is."""
    nspid: int | None = None
    """Its pid inside its container."""
    container: str | None = None

    @property
    def target(self) -> Target:
        """It, pinned."""
        return Target(pid=self.pid, start=self.start, name=self.name)

    @property
    def name(self) -> str:
        """What a person knows it by: its title, shortened, or its short name."""
        return short(self.title) or self.comm or f"pid {self.pid}"

    @property
    def lives(self) -> bool:
        """A signal can still have an effect."""
        return self.zombie_parent is None and self.state != "X"


class Member(Row, frozen=True, kw_only=True):
    """A process that belongs to a server."""

    how: tuple[str, ...] = ()
    """By which ways it was found: root, tree, session, group, run, cgroup, title."""


class Family(Answer, frozen=True, kw_only=True):
    """Everything that belongs to a server."""

    members: tuple[Member, ...] = ()
    doubtful: tuple[Member, ...] = ()
    """Share only the session or group of a leader that is dead: not touched."""
    denied: int = 0
    """Processes that the kernel would not let us look into."""
    closed: tuple[Row, ...] = ()
    """The first of them."""


class Alive(Answer, frozen=True, kw_only=True):
    """What is still there of some processes."""

    alive: tuple[Row, ...] = ()
    zombies: tuple[Row, ...] = ()


class Signalled(Answer, frozen=True, kw_only=True):
    """What became of one signal."""

    pid: int
    start: int = 0
    result: str = ""
    """``sent``, ``gone``, ``another process`` (the number was given to somebody else), ``denied``."""
    why: str | None = None


class Signals(Answer, frozen=True, kw_only=True):
    """What became of each."""

    targets: tuple[Signalled, ...] = ()


class Holder(Row, frozen=True, kw_only=True):
    """A process that owns GPU memory (owner) or merely has a device open (holder)."""

    kind: Literal["owner", "holder"] = "holder"
    cards: tuple[int, ...] = ()
    """Minor numbers of the devices it has open."""
    protected: str | None = None
    """Why it must be left alone (``persistence daemon``), or nothing."""
    above: tuple[str, ...] = ()
    """Short names of the processes above it in its own session, its parent's first."""
    zombie_leader: bool = False
    """Its main thread is gone and another thread holds the device: fuser and NVML do not see it."""
    heir_of: tuple[int, ...] = ()
    """Dead pids that NVML still names; this process seems to have inherited their descriptors."""


class Holders(Answer, frozen=True, kw_only=True):
    """Everything that has a GPU device open."""

    holders: tuple[Holder, ...] = ()
    denied: int = 0
    """Processes that the kernel would not let us look into."""
    closed: tuple[Row, ...] = ()
    """The first of them."""
    unanswered: int = 0


class Leftover(Answer, frozen=True, kw_only=True):
    """A file that a dead server left behind."""

    path: str
    size: int = 0
    pid: int | None = None
    user: str = ""
    why: str = ""


class KeptFile(Answer, frozen=True, kw_only=True):
    """A file that looks like one and is still in use."""

    path: str
    why: str = ""


class Leftovers(Answer, frozen=True, kw_only=True):
    """Files in shared memory and /tmp."""

    files: tuple[Leftover, ...] = ()
    bytes: int = 0
    kept: tuple[KeptFile, ...] = ()
    more: int = 0
    """Files that were not named, for want of room."""


class RemovedFile(Answer, frozen=True, kw_only=True):
    """What became of one leftover."""

    path: str
    result: str = ""
    """``removed``, or why not."""
    size: int = 0


class Removed(Answer, frozen=True, kw_only=True):
    """What became of the leftovers."""

    files: tuple[RemovedFile, ...] = ()


class FileStat(Answer, frozen=True, kw_only=True):
    """What the file system says of a file."""

    kind: str = "file"
    mode: int = 0
    user: str = ""
    size: int = 0
    nlink: int = 1


class File(Answer, frozen=True, kw_only=True):
    """A file's bytes."""

    path: str = ""
    exists: bool = True
    data: str = ""
    """Base64."""
    sha256: str | None = None
    truncated: bool = False
    stat: FileStat | None = None
    real: str | None = None
    """Where the path leads."""
    link: str | None = None
    """What the path points to, where it is a symbolic link."""
    hf_cache: bool = False
    """It is a link of the Hugging Face cache into a blob that other revisions share."""
    writable: bool = True

    @property
    def bytes(self) -> bytes:
        """What is in it."""
        return base64.b64decode(self.data)


class Stat(Answer, frozen=True, kw_only=True):
    """One file of many."""

    path: str
    exists: bool = False
    kind: str = ""
    size: int | None = None
    mtime: float | None = None
    """When it was written, on the host's clock."""
    real: str | None = None
    """Where the path leads."""
    readable: bool = True
    head: str | None = None
    """Its first bytes, base64."""
    error: str | None = None
    entries: tuple[tuple[str, int], ...] = ()
    """Of a folder: name and size of what is in it."""
    shards: tuple[str, ...] = ()
    """Of an index: the files that it names."""

    @property
    def first(self) -> bytes:
        """Its first bytes."""
        return base64.b64decode(self.head or "")


class Stats(Answer, frozen=True, kw_only=True):
    """Many files."""

    files: tuple[Stat, ...] = ()


class Written(Answer, frozen=True, kw_only=True):
    """A file was replaced."""

    sha256: str | None = None
    backup: str | None = None
    real: str | None = None
    notes: tuple[str, ...] = ()


class Launched(Answer, frozen=True, kw_only=True):
    """A start that was made."""

    found: bool = True
    pid: int | None = None
    start: int | None = None
    repeat: bool = False
    alive: bool | None = None
    ended: float | None = None
    exit: int | None = None
    """Its exit status, once it has ended and where that is known; negative: a signal."""
    log: str | None = None
    error: str | None = None


class Ran(Answer, frozen=True, kw_only=True):
    """A command that has ended."""

    exit: int | None = None
    output: str = ""
    timed_out: bool = False


class LockHolder(Answer, frozen=True, kw_only=True):
    """Whose operation is at work on the host."""

    who: str = "somebody"
    what: str = "an operation"
    at: float | None = None


class Lock(Answer, frozen=True, kw_only=True):
    """Whether the host is ours now, else whose."""

    held: bool = True
    by: LockHolder | None = None


def short(title: str, width: int = 60) -> str:
    """A command line cut to what fits a line."""
    words = " ".join(title.split())
    return words if len(words) <= width else words[: width - 1] + "…"
