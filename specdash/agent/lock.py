"""One operation a host: a lock on one file that every agent sees, given back by the kernel when we end."""

import errno
import fcntl
import json
import os
import signal
import stat as modes
import time

from specdash.agent import procfs, signals, wire
from specdash.agent.census import stat_of
from specdash.agent.holders import AGENT
from specdash.agent.processes import user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.host import Host

    Json = dict[str, Any]

LET_GO = 3.0
"""Seconds in which an agent that was told to end gives its lock back."""


def lock(acts: "Acts", request: "Json") -> "Json":
    """The verb. Asked again by the holder it only changes what it says.

    ``take``: an agent that works for the same person is told to end, since a later intent wins.
    """
    who, what = str(request["who"])[:200], str(request["what"])[:200]
    if acts.held is None and not _acquire(acts):
        by = _holder(acts.host)
        theirs = bool(request.get("take") and by and by["who"] == who)
        if not (theirs and by and _take_over(acts, by)):
            return {"held": False, "by": _holder(acts.host)}
    start = stat_of(acts.host, os.getpid())
    note: "Json" = {"who": who, "what": what, "pid": os.getpid(), "uid": os.geteuid(), "at": acts.host.now()}
    note.update(start=start.start if start else None, user=user_name(os.geteuid()))
    os.ftruncate(acts.held, 0)
    os.pwrite(acts.held, json.dumps(note).encode(), 0)
    return {"held": True, "by": note}


def unlock(acts: "Acts", request: "Json") -> "Json":
    """The verb."""
    if acts.held is None:
        return {"released": False}
    os.ftruncate(acts.held, 0)
    os.close(acts.held)
    acts.held = None
    return {"released": True}


def _acquire(acts: "Acts") -> bool:
    """Whether the lock is ours now."""
    while True:
        fd = _open(acts.host.lock)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        try:
            there, have = os.stat(acts.host.lock), os.fstat(fd)
            if (there.st_dev, there.st_ino) == (have.st_dev, have.st_ino):
                acts.held = fd
                return True
        except FileNotFoundError:
            pass  # it was removed between our opening and locking it
        os.close(fd)


def _open(path: str) -> int:
    """The lock's file, made where it is not there. Everybody may write there who they are."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            # Without O_CREAT: a kernel that guards /tmp (fs.protected_regular) refuses it for others' files.
            fd = os.open(path, flags)
        except FileNotFoundError:
            try:
                fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            os.fchmod(fd, 0o666)
        if not modes.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise wire.BadRequest("denied: %s is not a plain file" % path)
        return fd


def _holder(host: "Host") -> "Json | None":
    """Who has it: the pid as the kernel says, the words as the holder has left them there."""
    try:
        fd = os.open(host.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        said = _note(os.read(fd, 4096))
    finally:
        os.close(fd)
    pid = _kernel_says(host, found.st_ino)
    if pid is not None and said.get("pid") != pid:
        said = {"pid": pid}  # somebody else has scribbled there
    user = said.get("user")
    if pid is not None:
        try:
            user = user_name(os.stat("%s/%d" % (host.proc, pid)).st_uid)
        except OSError:
            pass
    return {
        "who": str(said.get("who") or "somebody"),
        "what": str(said.get("what") or "?"),
        "pid": said.get("pid"),
        "start": said.get("start"),
        "user": user,
        "at": said.get("at"),
        "sure": pid is not None,
    }


def _note(data: bytes) -> "Json":
    try:
        said = json.loads(data.decode("utf-8"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _kernel_says(host: "Host", inode: int) -> "int | None":
    """The process whose flock on this inode the kernel lists (proc(5), /proc/locks)."""
    try:
        lines = procfs.read(host.proc + "/locks").decode("ascii", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].split(":")[-1] == str(inode):
            return int(fields[4]) if int(fields[4]) > 0 else None
    return None


def _take_over(acts: "Acts", by: "Json") -> bool:
    """Tell the same person's other agent to end; whether the lock is ours then."""
    pid, start = by["pid"], by["start"]
    if not by["sure"] or not isinstance(start, int) or not _is_agent(acts.host, pid):
        return False
    if signals.send(acts.host, pid, start, signal.SIGTERM) == "denied":
        return False
    deadline = acts.host.monotonic() + LET_GO
    while not _acquire(acts):
        if acts.host.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _is_agent(host: "Host", pid: int) -> bool:
    try:
        data = procfs.read("%s/%d/cmdline" % (host.proc, pid))
    except OSError:
        return False
    return AGENT.search(data.decode("utf-8", "replace")) is not None
