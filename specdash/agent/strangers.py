"""Who listens on a port that a server wants, where that is none of the server's own processes."""

from specdash.agent import sockets
from specdash.agent.crew import Crew, Stuck
from specdash.agent.details import Watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from specdash.agent.host import Host


class Strangers(object):
    """Looks through all processes once for each new listener on a port of interest, and at no other time."""

    def __init__(self, host: "Host", crew: Crew) -> None:
        self.ports: "frozenset[int]" = frozenset()
        self.found: "dict[int, Watched]" = {}
        self._host = host
        self._crew = crew
        self._searched: "frozenset[int]" = frozenset()

    def find(
        self, listening: "Mapping[int, tuple[int, str]]", known: "Iterable[Watched]", pids: "Iterable[int]"
    ) -> None:
        """``listening``: socket → port and address. ``known``: whose sockets are. ``pids``: the others."""
        if not (self.ports or self.found):
            return
        owned: "set[int]" = set()
        for process in known:
            owned.update(process.sockets)
        wanted = frozenset(
            inode for inode, (port, _) in listening.items() if port in self.ports and inode not in owned
        )
        for pid in [pid for pid, process in self.found.items() if not process.sockets & wanted]:
            del self.found[pid]
        if wanted <= self._searched:
            return
        self._searched = wanted
        for pid in pids:
            held = self._held(pid) & wanted
            if held:
                self._take_up(pid, held)

    def _held(self, pid: int) -> "frozenset[int]":
        try:
            return self._crew.wait_for(pid, sockets.held, "%s/%d/fd" % (self._host.proc, pid))
        except (OSError, Stuck):
            return frozenset()  # another user's process: nobody knows

    def _take_up(self, pid: int, held: "frozenset[int]") -> None:
        try:
            self.found[pid] = Watched(self._host, pid)
        except (OSError, ValueError, IndexError):
            return
        self.found[pid].sockets = held
