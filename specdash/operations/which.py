"""Which server ``--server`` means: the same in every command and in the dashboard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specdash.errors import SpecdashError
from specdash.intake.rules import default_rules
from specdash.monitor.commandline import launch_facts
from specdash.monitor.naming import host_in_full
from specdash.monitor.state import HostState, Server
from specdash.profile.document import Profile
from specdash.profile.document import Server as ProfileServer
from specdash.sanitise import clean_line

USUAL_PORT = 8000
"""Of an engine that is not known here."""
NAMED_WITHIN_S = 4.0
"""So long after the first look a log that is still to be read may tell that a server is the meant one."""
SHOWN = 4
"""So many servers are named to who must say which one; hundreds help nobody."""


@dataclass(frozen=True)
class Wanted:
    """What stands behind ``--server``: a name of the profile or of the screen, a port or a pid."""

    word: str
    mine: Mapping[str, ProfileServer] = field(default_factory=dict)
    """The servers that the profile has on the host in question, by name."""

    @classmethod
    def of(
        cls, word: str | None, profile: Profile | None = None, hosts: Iterable[str | None] = ()
    ) -> Wanted | None:
        """None where no server was asked for. ``hosts``: names in the profile; None is not in it."""
        if word is None:
            return None
        known = [profile.servers_of(host) for host in hosts if host is not None] if profile else []
        return cls(word, {name: server for mine in known for name, server in mine.items()})

    def __str__(self) -> str:
        """As it was typed, fit for a screen."""
        return clean_line(self.word)

    def means(self, server: Server) -> bool:
        """It is this one. A name of the profile comes before whatever else is called so."""
        described = self.mine.get(self.word)
        if described is None:
            return server.answers_to(self.word)
        return _is(described, server)

    def described(self, seen: Iterable[Server]) -> str | None:
        """The server of the profile that is meant, whether it runs or not; None: none, or not one alone.

        ``seen``: the servers of the host, for one that is called by what only a running one has.
        """
        if self.word in self.mine:
            return self.word
        running = [server for server in seen if self.means(server)]
        fits = {
            name
            for name, one in self.mine.items()
            if self.word in _called(one) or any(_is(one, server) for server in running)
        }
        return fits.pop() if len(fits) == 1 else None

    def on_screen(self, seen: Iterable[Server]) -> str:
        """The word for it that needs no profile and lives through a restart, as its pid does not."""
        seen = list(filter(alive, seen))
        meant = [server.name for server in seen if self.means(server)]
        if len(meant) == 1 and [server.name for server in seen].count(meant[0]) == 1:
            return meant[0]
        described = self.mine.get(self.word)
        return self.word if described is None else _called(described)[0]


def _is(described: ProfileServer, server: Server) -> bool:
    """It is this one and no other, by engine and port: it may be ended, and started in its place."""
    return described.engine == server.engine and server.port == _port(described)


def _called(described: ProfileServer) -> tuple[str, str]:
    """How the screen calls it, and its port."""
    port = _port(described)
    return f"{described.engine}:{port}", str(port)


def _port(described: ProfileServer) -> int:
    """By its command line, else its engine's own."""
    usual = (one.default_port for one in default_rules().titles if one.engine == described.engine)
    return launch_facts(described.command).port or next(usual, USUAL_PORT)


def of_profile(profile: Profile, host: str | None, server: Server) -> str | None:
    """The name under which the profile knows a found server, where exactly one is certainly it."""
    if host is None:
        return None
    names = [name for name, one in profile.servers_of(host).items() if _is(one, server)]
    return names[0] if len(names) == 1 else None


def alive(server: Server) -> bool:
    """Something of it lives: its main process, or what it left behind."""
    return server.gone_at is None or server.processes > 0


def word_for(shown: Server | None, servers: Collection[Server]) -> str | None:
    """What names the server that is looked at; None where it is the only one, or none is looked at."""
    if shown is None or sum(map(alive, servers)) < 2:
        return None
    return Wanted(str(shown.pid)).on_screen(servers)


def some(names: Collection[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join([*list(names)[:SHOWN], *([f"{more} more"] if more > 0 else [])])


def absent(wanted: Wanted, servers: Collection[Server]) -> str:
    """None of these is meant: which there are."""
    return f"no server {wanted} here: {some([server.name for server in servers]) or 'none runs'}"


def absent_of(wanted: Wanted, states: Sequence[HostState]) -> str:
    """The same of several hosts, by their names."""
    if len(states) == 1:
        return absent(wanted, states[0].servers)
    there = (
        f"{host_in_full(state)}: {some([one.name for one in state.servers]) or _none(state)}"
        for state in states
    )
    return f"no server {wanted} on any host; {'; '.join(there)}"


def _none(state: HostState) -> str:
    return "not seen" if state.processes_at is None else "none runs"


def choose(servers: Sequence[Server], wanted: Wanted | None) -> Server:
    """The living server that is meant. Raises ``NoServer``, or ``Ambiguous`` where several are."""
    known = [server for server in servers if alive(server)]
    living = known if wanted is None else [server for server in known if wanted.means(server)]
    if not living and wanted is not None:
        raise NoServer(f"no server {wanted} here", _listed(known) or "none runs")
    if not living:
        raise NoServer("no server runs here", "`clean` looks for what a dead one left")
    if len(living) > 1:
        raise Ambiguous(f"{len(living)} servers run here: say which one by --server", _listed(living))
    return living[0]


def _listed(servers: Sequence[Server]) -> str:
    """For whoever must say which one: name, pid and state of each."""
    return some([f"{server.name} (pid {server.pid}, {server.state})" for server in servers])


class NoServer(SpecdashError):
    """Nothing runs that could be acted on."""


class Ambiguous(SpecdashError):
    """More than one server could be meant: refused, whether it was a look or an act."""

    exit_code = 4
