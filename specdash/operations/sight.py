"""What must be known of a server before it is stopped: its family, who manages it, how it was started.

Only looks. What could not be read is said, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from specdash.agent import procfs
from specdash.errors import RequestError
from specdash.intake.rules import default_rules
from specdash.monitor.servers import Titles
from specdash.monitor.state import Server
from specdash.operations.acts import Hands
from specdash.operations.managers import Manager, recognise
from specdash.operations.replies import Family, Member
from specdash.operations.work import Target

SESSION_ONLY = frozenset(
    "SSH_CLIENT SSH_CONNECTION SSH_TTY SSH_AUTH_SOCK SSH_ASKPASS TERM COLORTERM TMUX TMUX_PANE STY WINDOW"
    " SHLVL _ OLDPWD PWD DISPLAY WAYLAND_DISPLAY XDG_SESSION_ID XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS"
    " LS_COLORS SPECDASH_RUN INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET".split()
)
"""Variables of the login or unit that a server was started from: not part of how it is started."""


LET_IN = "it was let into that by `exec` and is ended alone, the container goes on; start it again in there"


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """One server, looked at closely."""

    server: Server
    family: Family
    manager: Manager | None = None
    parent: str = ""
    """The short name of the main process's parent; empty where it is init."""
    argv: tuple[str, ...] = ()
    """The whole command line, secrets included: never to be shown or kept as it is."""
    env: dict[str, str] | None = None
    """The whole environment; None where it could not be read."""
    cwd: str | None = None
    missing: tuple[str, ...] = ()
    """What could not be read, each a sentence."""

    @property
    def main(self) -> Member | None:
        """The process that the server is known by."""
        return next((member for member in self.family.members if member.pid == self.server.pid), None)

    @property
    def run(self) -> str | None:
        """The token of the launch of ours that it is from."""
        return (self.env or {}).get("SPECDASH_RUN")

    @property
    def living(self) -> tuple[Member, ...]:
        """Those that a signal can reach."""
        return tuple(member for member in self.family.members if member.lives)

    @property
    def seeds(self) -> tuple[Target, ...]:
        """All of them, pinned: whoever is left of them leads to the rest."""
        return tuple(member.target for member in self.family.members)

    def orphaned(self, titles: Sequence[Titles]) -> bool:
        """Its main process is gone: what it is known by is a worker."""
        mine = next((each for each in titles if each.engine == self.server.engine), None)
        main = self.main
        if main is None or not main.lives:
            return bool(self.living)
        return bool(mine and mine.member.search(main.title))


async def look(hands: Hands, server: Server) -> Sight:
    """Look at one server. Raises ``RequestError`` where even its family cannot be listed."""
    pinned = [Target(pid=server.pid, start=server.start)]
    known = dict.fromkeys([*((rank.pid, rank.start) for rank in server.ranks), *server.leftovers])
    pinned += [Target(pid=pid, start=start) for pid, start in known if pid != server.pid]
    family = await hands.family(pinned)
    reader = _Reader(hands, _read_of(server, family))
    argv = tuple(part for part in (await reader.text("cmdline") or "").split("\0") if part)
    env = await reader.environment()
    groups = (await reader.text("cgroup") or "").encode("utf-8", "surrogateescape")
    cgroup = procfs.cgroup(groups) if not _simulated(hands) else None
    cwd = await reader.cwd()
    run = (env or {}).get("SPECDASH_RUN")
    if run:
        family = await hands.family(pinned, run)
    main = next((member for member in family.members if member.pid == server.pid), None)
    parent = await reader.comm(main.ppid) if main and main.ppid > 1 else ""
    host = hands.state.host
    manager = recognise(cgroup, parent=parent, env=env, container=host.container if host else None)
    if manager is not None and manager.name in ("docker", "podman") and await reader.was_let_in():
        manager = msgspec.structs.replace(manager, stop=(), advice=LET_IN)
    return Sight(
        server=server, family=family, manager=manager, parent=parent, argv=argv, env=env, cwd=cwd,
        missing=tuple(reader.missing),
    )  # fmt: skip


def _read_of(server: Server, family: Family) -> int:
    """The process whose files tell of it: its main one, or, as a number may be reused, one that it left."""
    living = [member.pid for member in family.members if member.lives]
    return server.pid if server.pid in living or not living else living[0]


def _simulated(hands: Hands) -> bool:
    """Its processes lie in the control group of whoever started the simulation: that manages nothing."""
    host = hands.state.host
    return host is not None and host.simulated


class _Reader:
    """Reads what /proc knows of a process, and remembers what it could not read."""

    def __init__(self, hands: Hands, pid: int) -> None:
        self._hands = hands
        self._pid = pid
        self.missing: list[str] = []

    async def text(self, name: str) -> str | None:
        """A file of the process as text; NULs stay."""
        try:
            file = await self._hands.read_file(f"/proc/{self._pid}/{name}")
        except RequestError as error:
            self.missing.append(f"its {_WORDS.get(name, name)}: {error.message}")
            return None
        if not file.exists:
            self.missing.append(f"its {_WORDS.get(name, name)}: the process is gone")
            return None
        return file.bytes.decode("utf-8", "surrogateescape")

    async def environment(self) -> dict[str, str] | None:
        """The environment it was started with; None where a process title has overwritten it."""
        text = await self.text("environ")
        if text is None:
            return None
        if text.startswith("\0") or (text and "=" not in text.split("\0", 1)[0]):
            self.missing.append("its environment: overwritten by the process title")
            return None
        pairs = (entry.partition("=") for entry in text.split("\0") if "=" in entry)
        return {name: value for name, _, value in pairs if name}

    async def cwd(self) -> str | None:
        """The folder it works in."""
        try:
            found = await self._hands.stat_files([f"/proc/{self._pid}/cwd"])
        except RequestError as error:
            self.missing.append(f"its folder: {error.message}")
            return None
        real = found[0].real if found and found[0].exists else None
        if real is None or real.startswith("/proc/"):
            self.missing.append("its folder")
            return None
        return real

    async def was_let_in(self) -> bool:
        """By ``docker exec``: nothing above it is its container's first process."""
        pid, depth = self._pid, 0
        while pid > 1:
            status = await self._status(pid)
            numbers = status.get("NSpid", "").split()
            if not numbers or numbers[-1] == "1":
                return False
            if len(numbers) < depth:
                return True
            pid, depth = int(status.get("PPid", 0)), len(numbers)
        return False  # it has the host's numbers, or they are not known

    async def _status(self, pid: int) -> dict[str, str]:
        try:
            text = (await self._hands.read_file(f"/proc/{pid}/status")).bytes.decode("utf-8", "replace")
        except RequestError:
            return {}
        return dict(line.partition(":")[::2] for line in text.splitlines())

    async def comm(self, pid: int) -> str:
        """The short name of another process; empty where it cannot be read."""
        try:
            return (await self._hands.read_file(f"/proc/{pid}/comm")).bytes.decode("utf-8", "replace").strip()
        except RequestError:
            return ""


_WORDS: Mapping[str, str] = {
    "cmdline": "command line",
    "environ": "environment",
    "cgroup": "control group",
}


def titles() -> tuple[Titles, ...]:
    """How the known engines call their processes."""
    return default_rules().titles
