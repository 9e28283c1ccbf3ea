"""How a process calls itself: command line, environment and name as others see them in /proc.

What ``setproctitle`` does to SGLang's workers, done through /proc/self/mem: the title replaces the
command line, and most of the environment that was handed over at the start is blanked.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def own_stat(pid: int | None = None) -> list[bytes]:
    """Fields of /proc/PID/stat behind the name, the state first. Raises OSError for a pid that is gone."""
    with open(f"/proc/{pid or 'self'}/stat", "rb") as file:  # noqa: PTH123 - pathlib is too heavy for a rank
        return file.read().rpartition(b")")[2].split()


def start_ticks(pid: int | None = None) -> int:
    """When the process began, in clock ticks after boot: with its pid its identity."""
    return int(own_stat(pid)[19])


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends, stopped or not."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def rename(argv: Sequence[str], comm: str | None = None, *, blank_environment: bool = False) -> None:
    """Show another command line, and with ``comm`` another name (cut to 15 characters by the kernel)."""
    fields = own_stat()
    arg_start, arg_end, env_start, env_end = (int(field) for field in fields[45:49])
    title = b"\0".join(os.fsencode(word) for word in argv)
    room = arg_end - arg_start
    with open("/proc/self/mem", "r+b", buffering=0) as memory:  # noqa: PTH123
        memory.seek(arg_start)
        memory.write(title[: room - 1].ljust(room, b"\0"))
        if blank_environment:
            # What was exported last survives; all the rest reads as NUL.
            memory.seek(env_start)
            kept = memory.read(env_end - env_start).rstrip(b"\0").rpartition(b"\0")[2]
            memory.seek(env_start)
            memory.write(bytes(env_end - env_start - len(kept) - 1))
    if comm:
        with open("/proc/self/comm", "wb", buffering=0) as file:  # noqa: PTH123
            file.write(comm.encode()[:15])
