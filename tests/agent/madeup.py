"""Processes made by a test, with titles of their own, and an agent that watches for them."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable

from specdash.monitor.frames import Processes
from specdash.monitor.samples import Process
from tests.agent.driver import RunningAgent

MARK = "made-up-" + uuid.uuid4().hex[:8]
"""In the title of every process made here: nothing else on the machine matches."""
WAIT = "import sys; print('up', flush=True); sys.stdin.read()"
Make = Callable[..., "subprocess.Popen[str]"]


def watch(agent: RunningAgent, match: str = MARK, env: tuple[str, ...] = ()) -> None:
    agent.ask("watch", match=[match], env=list(env), interval=0.2)


def see(agent: RunningAgent, pid: int, such: Callable[[Process], object] = lambda process: True) -> Process:
    """The first sight of this process for which ``such`` holds."""

    def wanted(frame: Processes) -> list[Process]:
        return [process for process in frame.list if process.pid == pid and such(process)]

    return wanted(agent.wait(Processes, wanted))[0]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
