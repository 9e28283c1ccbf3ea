"""Signals to processes that are pinned by boot, pid and start time, and who of them is still alive.

A pidfd holds on to one process: once its start time has been seen to be the right one through /proc, the
signal cannot reach another that has taken over the number. Kernels before 5.3 have none; there the start
time is read once more right before the signal.
"""

import ctypes
import os
import signal as signals

from specdash.agent import wire
from specdash.agent.census import Census, describe, is_dead, stat_of, targets, untouchable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.host import Host
    from specdash.agent.records import Record

    Json = dict[str, Any]

NUMBERS = {
    "TERM": signals.SIGTERM,
    "KILL": signals.SIGKILL,
    "INT": signals.SIGINT,
    "CONT": signals.SIGCONT,
}
PIDFD_SEND_SIGNAL, PIDFD_OPEN = 424, 434
"""System call numbers, the same on every architecture (Linux 5.1 and 5.3)."""


def signal(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb. Our own agent, what is above it, and supervisors are never touched."""
    if request["signal"] not in NUMBERS:
        raise wire.BadRequest("no such signal here: %s" % repr(request["signal"])[:40])
    if "boot" not in request:
        raise wire.BadRequest("a process is pinned by its boot, too")
    wanted = targets(request["targets"])
    census = Census(acts.host, acts.records)
    rows: "list[Json]" = []
    results: "list[str]" = []
    for pid, start in wanted:
        why = untouchable(census, pid)
        if why:
            results.append("denied")
        elif pid not in census.stats:
            results.append("gone")
        else:
            results.append(send(acts.host, pid, start, NUMBERS[request["signal"]]))
        rows.append({"pid": pid, "start": start, "result": results[-1], "why": why})
    record.says = ", ".join("%s %d" % (word, results.count(word)) for word in sorted(set(results)))
    return {"targets": rows}


def alive(acts: "Acts", request: "Json") -> "Json":
    """The verb. A dead process that waits to be reaped is named with the parent that must do it."""
    patience = acts.patience()
    answer: "dict[str, list[Json]]" = {"alive": [], "zombies": [], "gone": []}
    for pid, start in targets(request["targets"]):
        stat = stat_of(acts.host, pid)
        if stat is None or stat.start != start:
            answer["gone"].append({"pid": pid, "start": start})
            continue
        kind = "zombies" if is_dead(acts.host, pid, stat) else "alive"
        answer[kind].append(describe(acts.host, patience, pid, stat))
    patience.close()
    return answer


def send(host: "Host", pid: int, start: int, number: int) -> str:
    """Signal this very process: ``sent``, ``gone``, ``another process`` or ``denied``."""
    fd = -1
    try:
        fd = _pidfd_open(pid)
        stat = stat_of(host, pid)
        if stat is None:
            return "gone"
        if stat.start != start:
            return "another process"
        if is_dead(host, pid, stat):
            return "gone"
        if fd < 0:
            os.kill(pid, number)
        else:
            _pidfd_send_signal(fd, number)
        return "sent"
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "denied"
    finally:
        if fd >= 0:
            os.close(fd)


def _pidfd_open(pid: int) -> int:
    """A descriptor of the process, or -1 where the kernel has none to give."""
    try:
        if hasattr(os, "pidfd_open"):
            return os.pidfd_open(pid)
        return _system_call(PIDFD_OPEN, pid, 0)
    except ProcessLookupError:
        raise
    except (OSError, AttributeError):
        return -1  # an old kernel, or a sandbox that forbids the call


def _pidfd_send_signal(fd: int, number: int) -> None:
    if hasattr(signals, "pidfd_send_signal"):
        signals.pidfd_send_signal(fd, number)
    else:
        _system_call(PIDFD_SEND_SIGNAL, fd, number, None, 0)


def _system_call(number: int, *arguments: "int | None") -> int:
    """A system call that Python has no name for before 3.9. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
