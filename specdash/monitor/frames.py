"""Frames: what the agent says, one JSON object a line. The same lines are a recording.

Every frame carries ``at``: seconds since the epoch **on the host's clock** (a simulated host has its own).
Two kinds are born on this side of the link, because the host cannot say them: ``link`` and ``tick``.
The agent cannot import this file (it runs on the host with the standard library alone), so a test
decodes what a real agent sends. Unknown fields are ignored and new fields have defaults: an old
recording stays readable.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from specdash.monitor.samples import Amount, Card, CardHealth, Disk, KernelLine, Moment, Process, Whole

PROTOCOL = 1


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag=str.lower):
    """Base of all frames."""

    at: Moment


class Hello(Frame, frozen=True, kw_only=True):
    """The agent has started: who and where it is, and whether it may act."""

    proto: Whole
    specdash: str
    host: str
    boot: str
    """The kernel's boot id: a process is (boot, pid, start), never a pid."""
    pid: Whole
    uid: Whole
    user: str
    python: str
    kernel: str = ""
    verbs: tuple[str, ...] = ()
    """Groups of requests it obeys: ``look`` always, ``act`` not under ``--watch``."""
    container: str | None = None
    """Why we think we are inside a container (``docker``, ``lxc``, ``pid namespace``), or None."""
    host_pids: bool | None = None
    """The process table is the machine's own: no process is hidden in another namespace. None: not known."""
    simulated: bool = False
    """A made-up host; the screen says so."""
    cpus: Whole = 1


class Beat(Frame, frozen=True, kw_only=True):
    """Once a second of real time, whatever else happens: the link and the agent live."""

    n: Whole


class Pong(Frame, frozen=True, kw_only=True):
    """The answer to a ping; carries its number back."""

    n: Whole


class Gpus(Frame, frozen=True, kw_only=True):
    """All cards, once a second."""

    driver: str | None = None
    cards: tuple[Card, ...] = ()
    error: str | None = None
    """Why there is no card list: no driver library, no permission, NVML does not answer."""


class Health(Frame, frozen=True, kw_only=True):
    """The health of all cards, every ten seconds."""

    cards: tuple[CardHealth, ...] = ()


class Processes(Frame, frozen=True, kw_only=True):
    """Every process that matches the watch, with its descendants, and every owner of GPU memory."""

    list: tuple[Process, ...] = ()
    denied: Whole = 0
    """Processes of other users whose details could not be read."""


class Machine(Frame, frozen=True, kw_only=True):
    """RAM, shared memory, disks: every ten seconds."""

    ram_used_mib: Whole | None = None
    ram_total_mib: Whole | None = None
    shm_used_mib: Whole | None = None
    shm_total_mib: Whole | None = None
    load_1m: Amount | None = None
    disks: tuple[Disk, ...] = ()


class Kernel(Frame, frozen=True, kw_only=True):
    """The newest lines of the kernel's log about GPUs, memory and hung tasks, when one has come."""

    lines: tuple[KernelLine, ...] = ()
    """All that are kept, oldest first; at most fifty."""
    denied: bool = False
    """It may not be read here."""
    reason: str | None = None


ANEW: Final = frozenset({"rotated", "truncated", "replaced"})
"""Breaks behind which the lines are those of a file that begins."""


class Log(Frame, frozen=True, kw_only=True):
    """Bytes of a log, in order, at most 48 KiB raw each."""

    path: str
    file: str
    """Identity of the file: ``device:inode``."""
    offset: Whole
    """Where ``data`` begins in the file."""
    size: Whole
    """The file's size when read: what is still behind is ``size - offset - len``."""
    text: str | None = None
    """The bytes, where they are whole UTF-8: a person can read a recording."""
    data: bytes | None = None
    """The bytes in base64, where they are not."""
    mtime: Amount = 0.0
    """The file's modification time on the host's clock."""
    head: str | None = None
    """SHA-1 of the first min(end, 256) bytes of the file, where end = offset + len: the cursor that goes on
    after these bytes is ``{"file": file, "offset": end, "head": head, "tail": tail}``."""
    tail: str | None = None
    """SHA-1 of the last min(end, 256) bytes before end: a copy of the file is known by both."""
    break_: Literal["start", "rotated", "truncated", "replaced", "gap", "skipped"] | None = msgspec.field(
        default=None, name="break"
    )
    """Why these bytes do not join the ones before. ``start``: first bytes after ``tail``; ``skipped``: the
    log had grown too far ahead."""

    @property
    def raw(self) -> bytes:
        """The very bytes of the file."""
        return self.data if self.data is not None else (self.text or "").encode()


class Glimpse(Frame, frozen=True, kw_only=True):
    """The last lines of a log whose backlog is on its way: something to read meanwhile. They come again."""

    path: str
    size: Whole
    """The file's size: when the log's bytes have come this far, the glimpse is over."""
    text: str | None = None
    data: bytes | None = None

    @property
    def raw(self) -> bytes:
        """The very bytes of the file."""
        return self.data if self.data is not None else (self.text or "").encode()


class LogState(Frame, frozen=True, kw_only=True, tag="logstate"):
    """A log could not be read, can be read again, or is silent: its size and mtime without new bytes."""

    path: str
    error: str | None = None
    size: Whole | None = None
    mtime: Amount | None = None


class Http(Frame, frozen=True, kw_only=True):
    """The answer of one poll of a server, or why there is none."""

    server: str
    path: str
    """The request's path; ``connect`` for a bare TCP connect."""
    status: Whole | None = None
    error: str | None = None
    """``refused``, ``timeout``, ``reset``, or the text of the failure."""
    ms: Amount | None = None
    body: str = ""
    local_port: Whole | None = None
    """Our end of the connection: the server's access line shows it, so our own lines can be told apart."""


class Note(Frame, frozen=True, kw_only=True):
    """Something about the agent itself that a person should know."""

    level: Literal["info", "warning", "error"]
    text: str


class Reply(Frame, frozen=True, kw_only=True):
    """The answer to a request that has an id."""

    id: str
    ok: bool
    error: str | None = None
    value: Any = None


class Bench(Frame, frozen=True, kw_only=True):
    """What a benchmark on the host has printed, in order: ``specdash.bench.events``, as plain data."""

    run: str
    """The token under which it was started."""
    offset: Whole = 0
    """Where the last of these lines ends: the place to follow it from after a lost link."""
    events: tuple[Any, ...] = ()
    over: bool = False
    """It has ended, and this is all of it."""
    exit: Whole | None = None


class Link(Frame, frozen=True, kw_only=True):
    """Born on this side: the state of the connection. ``at`` carries the host's clock on."""

    state: Literal["connecting", "live", "stale", "lost", "refused"]
    reason: str | None = None
    key: str | None = None
    """The diagnosis key of the reason, ``ssh_*``."""
    hint: str | None = None
    """What the operator can do about it; the reason ends with it, in brackets."""
    retry_in_s: Amount | None = None
    attempt: Whole = 0
    rtt_ms: Amount | None = None


class Tick(Frame, frozen=True, kw_only=True):
    """Born on this side once a second, so that ages grow although nothing arrives."""


class Ending(Frame, frozen=True, kw_only=True):
    """Born on this side: the operator has begun to end this server, so its end is no crash."""

    server: str
    """Its key."""


AnyFrame: TypeAlias = (
    Hello
    | Beat
    | Pong
    | Gpus
    | Health
    | Processes
    | Machine
    | Kernel
    | Log
    | Glimpse
    | LogState
    | Http
    | Note
    | Reply
    | Bench
    | Link
    | Tick
    | Ending
)

_decoder: msgspec.json.Decoder[AnyFrame] = msgspec.json.Decoder(AnyFrame)


def decode(line: bytes) -> AnyFrame:
    """Turn one line into a frame.

    Raises ``msgspec.ValidationError`` (a ``ValueError``) for a line that is no frame.
    """
    return _decoder.decode(line)
