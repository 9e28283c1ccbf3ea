"""An agent whose records, lock, devices and leftovers are in a test's folder, asked one thing at a time."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specdash.agent import procfs
from specdash.monitor.frames import Reply
from tests.agent.driver import RunningAgent

ADAPTER = """
import json, os
place = os.environ["MADE_UP_HOST"]
def make(Host):
    class Made(Host):
        syslog = place + "/log"
        lock = place + "/specdash.lock"
        def run_folder(self):
            return place + "/run"
        def state_folder(self):
            return place + "/state"
        def leftover_folders(self):
            return {"shm": place + "/shm", "tmp": place + "/tmp"}
        def device_majors(self):
            return {}
        def device_paths(self):
            return sorted(place + "/dev/" + name for name in os.listdir(place + "/dev"))
        def nvml(self):
            raise ImportError("none here")
    return Made()
"""

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

Json = dict[str, Any]


def furnish(place: Path) -> Path:
    """The folder of a made-up host: two cards, and what CUDA opens beside them."""
    for part in ("dev", "shm", "tmp"):
        (place / part).mkdir(parents=True, exist_ok=True)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (place / "dev" / name).write_bytes(bytes(4096))
    (place / "adapter.py").write_text(ADAPTER)
    return place


class Hands(RunningAgent):
    """A running agent on a made-up host. Leaving it ends the agent."""

    def __init__(
        self,
        place: Path,
        python: str = sys.executable,
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        about = {"SPECDASH_HOST_ADAPTER": str(place / "adapter.py"), "MADE_UP_HOST": str(place)}
        super().__init__(python, options, {**about, **(env or {})})

    def __enter__(self) -> Hands:
        return self

    def send(self, verb: str, token: str | None = None, **fields: Any) -> str:
        """Ask without waiting; returns the token."""
        token = token or secrets.token_hex(8)
        self.ask(verb, id=token, token=token, **fields)
        return token

    def reply(self, token: str, limit: float = 60.0) -> Reply:
        """The answer to a request."""
        return self.wait(Reply, lambda reply: reply.id == token, limit)

    def do(self, verb: str, token: str | None = None, **fields: Any) -> Json:
        """Ask for something that works; returns the value."""
        reply = self.reply(self.send(verb, token, **fields))
        assert reply.ok, reply.error
        value: Json = reply.value
        return value

    def refusal(self, verb: str, token: str | None = None, **fields: Any) -> str:
        """Ask for something that does not work; returns why."""
        reply = self.reply(self.send(verb, token, **fields))
        assert not reply.ok, reply.value
        assert reply.error
        return reply.error

    def signal(self, name: str, *pids: int) -> dict[int, str]:
        """Send a signal to these very processes; returns what became of each."""
        targets = [{"pid": pid, "start": start_of(pid)} for pid in pids]
        rows = self.do("signal", signal=name, targets=targets, boot=BOOT)["targets"]
        return {row["pid"]: row["result"] for row in rows}

    def family(self, *pids: int, run: str | None = None) -> Json:
        """The verb, for processes that run now."""
        roots = [{"pid": pid, "start": start_of(pid)} for pid in pids]
        return self.do("family", pids=roots, run=run)


def start_of(pid: int) -> int:
    """A process's start time."""
    return procfs.Stat(Path(f"/proc/{pid}/stat").read_bytes()).start


def state_of(pid: int) -> str:
    """R, S, D, T, Z; X for one that is gone."""
    try:
        return procfs.Stat(Path(f"/proc/{pid}/stat").read_bytes()).state
    except OSError:
        return "X"


def is_dead(pid: int) -> bool:
    """Gone, or only waiting to be reaped."""
    return state_of(pid) in "ZX"


def until(such: Callable[[], object], limit: float = 60.0) -> None:
    """Wait for something that happens by itself."""
    deadline = time.monotonic() + limit
    while not such():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def pids_of(place: Path) -> dict[str, int]:
    """What a made-up server has told about itself: role -> pid."""
    told: dict[str, int] = {}
    for line in place.read_text().splitlines():
        told.update(json.loads(line))
    return told


def root() -> bool:
    """Whether we may do what only root may."""
    return os.geteuid() == 0
