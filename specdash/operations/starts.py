"""How a server of one host is started: as the profile describes it, else as it was seen to be started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from specdash.errors import SpecdashError
from specdash.monitor.state import Server
from specdash.operations.acts import Acts, Hands
from specdash.operations.found import Found
from specdash.operations.journal import Journal
from specdash.operations.launch import Wish
from specdash.operations.offer import Known
from specdash.operations.sight import Sight, look
from specdash.operations.sightings import Sightings
from specdash.operations.which import alive, of_profile
from specdash.operations.wishes import from_found, from_profile, last_good, variant_of
from specdash.profile.document import Profile
from specdash.profile.keys import key_variable

MOST_NAMED: Final = 3
"""So many flags of a difference are named, the others counted."""


def beside(wish: Wish, shown: Wish) -> str:
    """``with --draft-model, other --tp``: how one start differs from the one that is shown, by its flags."""
    ours, theirs = _flags(wish.launch.argv), _flags(shown.launch.argv)
    told = _apart(ours, theirs)
    if wish.launch.whole_env == shown.launch.whole_env:
        told += _apart(wish.launch.env, shown.launch.env)
    told += [f"with {change.path} patched" for change in wish.changes if change not in shown.changes]
    return ", ".join(told) or "the same flags"


def _flags(argv: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in argv:
        name, equals, value = word.partition("=")
        if name.startswith("-") and not name[1:2].isdigit():  # -1 is a value
            values = found.setdefault(name, [])
            values += [value] if equals else []
        else:
            values.append(word)
    return found


def _apart(ours: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    changed = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    parts = (
        ("with", [name for name in ours if name not in theirs]),
        ("without", [name for name in theirs if name not in ours]),
        ("other", changed),
    )
    return [f"{word} {_named(names)}" for word, names in parts if names]


def _named(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"


class Starts:
    """What is known of the starts of one host's servers. ``host_name``: the host's name in the profile."""

    def __init__(
        self, acts: Acts, journal: Journal, sightings: Sightings, profile: Profile, host_name: str | None
    ) -> None:
        self._acts, self._journal, self._sightings = acts, journal, sightings
        self._profile, self._host_name = profile, host_name

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the profile's variants of this host's servers."""
        mine = self._profile.servers_of(self._host_name) if self._host_name else {}
        return tuple(name for name, one in self._profile.variants.items() if one.server in mine)

    def key_env(self, server: Server) -> str | None:
        """The variable that holds a found server's API key, where the profile names one."""
        name = of_profile(self._profile, self._host_name, server)
        return key_variable(self._profile, name) if name is not None else None

    def known(self, server: Server | None) -> Known | None:
        """Why this server could be started, or without one the last; None: it cannot. Asked at any time."""
        if self._profiled(server) is not None:
            return "profile"
        return "seen" if self._sightings.knows(server.name if server is not None else None) else None

    def _profiled(self, server: Server | None) -> str | None:
        """The name under which the profile describes it; without a server: the only one of this host."""
        if server is not None:
            return of_profile(self._profile, self._host_name, server)
        mine = tuple(self._profile.servers_of(self._host_name)) if self._host_name is not None else ()
        return mine[0] if len(mine) == 1 else None

    async def living(self, server: Server | None) -> Sight | None:
        """A close look at a server of which something lives, were it only what it has left behind."""
        if server is None or not alive(server):
            return None
        sight = await look(Hands(self._acts), server)
        return sight if sight.living else None

    def wish(self, server: Server | None, sight: Sight | None, variant: str | None) -> Wish:
        """What shall be launched. Raises ``SpecdashError`` where that is not known."""
        chosen = variant_of(self._profile, variant)
        name = chosen.server if chosen else self._profiled(server)
        if name is not None:
            described = self._profile.servers[name]
            last = last_good(self._journal, self._acts.target, described.engine)
            return from_profile(name, described, chosen, last, key_variable(self._profile, name))
        found = (self._sightings.keep(sight) if sight is not None else None) or self.found(server)
        return from_found(found, last_good(self._journal, self._acts.target, found.launch.engine))

    def found(self, server: Server | None) -> Found:
        """How it was seen to be started. Raises ``SpecdashError`` where it never was."""
        found = self._sightings.of(server.name if server is not None else None)
        if found is None and server is not None:
            raise SpecdashError(
                "its command line was not seen",
                "a profile can start it, or `specdash init` while it runs writes one",
            )
        if found is None:
            raise SpecdashError(
                "how it was started was never seen",
                "write it into a profile, specdash.toml: `specdash config schema` shows how",
            )
        return found
