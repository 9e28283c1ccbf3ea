"""RAM, shared memory, load and disks, every ten seconds. A dead network disk is left out and told of."""

import os

from specdash.agent import procfs
from specdash.agent.crew import Crew, Stuck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

EVERY = 10.0
PATIENCE = 3.0


class Machine(object):
    """Sends ``machine`` frames from a thread of its own."""

    def __init__(
        self, host: "Host", send: "Callable[[Json], None]", complain: "Callable[[str], None]"
    ) -> None:
        self.host = host
        self.crew = Crew("machine", self._round, PATIENCE, host.monotonic, complain)
        self._send = send

    def _round(self) -> float:
        frame: "Json" = {"t": "machine", "at": self.host.now()}
        frame.update(self._memory())
        shm = self._space(self.host.shm)
        if shm:
            frame["shm_total_mib"], frame["shm_used_mib"] = shm[1], shm[1] - shm[0]
        try:
            frame["load_1m"] = float(procfs.read(self.host.proc + "/loadavg").split()[0])
        except (OSError, ValueError, IndexError):
            pass
        disks = [(path, self._space(path)) for path in self.host.disks()]
        frame["disks"] = [
            {"path": path, "free_mib": space[0], "total_mib": space[1]} for path, space in disks if space
        ]
        self._send(frame)
        return EVERY

    def _memory(self) -> "Json":
        """Used is what MemAvailable leaves of the total: caches that can be dropped are not in use."""
        try:
            lines = procfs.read(self.host.proc + "/meminfo").splitlines()
            kib = {line.split(b":")[0]: int(line.split()[1]) for line in lines if line}
            total = kib[b"MemTotal"]
            free = kib.get(b"MemAvailable", kib[b"MemFree"])
        except (OSError, ValueError, IndexError, KeyError):
            return {}
        return {"ram_total_mib": total >> 10, "ram_used_mib": (total - free) >> 10}

    def _space(self, path: str) -> "tuple[int, int] | None":
        """(free, total) MiB of a file system, as an ordinary user may use it."""
        try:
            found = self.crew.wait_for(path, os.statvfs, path)
        except (OSError, Stuck):
            return None
        size = found.f_frsize
        # What is reserved for root is neither free nor part of what can be filled.
        free, total = found.f_bavail, found.f_blocks - found.f_bfree + found.f_bavail
        return free * size >> 20, total * size >> 20
