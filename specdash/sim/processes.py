"""The first process of the simulated host: it starts others, adopts orphans and buries the dead."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from specdash.sim.adapter import descendants

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""How an operator ends a simulated host."""

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends. Raises OSError where that fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def sweep(limit_s: float = 5.0) -> list[int]:
    """Kill every descendant, stopped, orphaned or both, until none is left; returns what would not go."""
    deadline = time.monotonic() + limit_s
    while True:
        for pid in (left := _living()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _bury()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.005)


def _living() -> list[int]:
    return descendants("/proc", os.getpid())


def _bury() -> list[tuple[int, int]]:
    """Take the exit status of every child that has ended: (pid, status)."""
    dead = []
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            dead.append(found)
    except ChildProcessError:
        pass
    return dead


class Processes:
    """Starts processes and knows when they end. Must be made in the loop's own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        files: tuple[int, int, int],
        *,
        terminal: bool = False,
    ) -> asyncio.Future[int]:
        """Start a process in a session of its own; the future is its wait status. Raises OSError."""
        # Nobody but this class waits for children, so Popen is only used to start them.
        child = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            executable=_find(argv[0], env),
            start_new_session=True,
            preexec_fn=_take_terminal if terminal else None,
        )
        child.returncode = 0
        ended = self._waiting[child.pid] = self._loop.create_future()
        return ended

    def _reap(self) -> None:
        for pid, status in _bury():
            ended = self._waiting.pop(pid, None)
            if ended and not ended.done():
                ended.set_result(status)


def _find(name: str, env: Mapping[str, str]) -> str:
    """A program by the PATH of the host that is simulated, not by ours."""
    if "/" in name:
        return name
    found = (Path(folder) / name for folder in env.get("PATH", os.defpath).split(":"))
    return next((str(path) for path in found if os.access(path, os.X_OK)), name)


def _take_terminal() -> None:
    """Make stdin the controlling terminal of the new session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
