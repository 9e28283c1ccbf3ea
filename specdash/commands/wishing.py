"""Which server a command means to launch: by the profile, else as it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specdash.commands.acting import Scene
from specdash.errors import SpecdashError

if TYPE_CHECKING:
    from specdash.operations.found import Found
    from specdash.operations.launch import Wish
    from specdash.operations.sight import Sight


def wish_to_launch(here: Scene) -> Wish:
    """The server of the profile that is meant, else the only one that was seen on this host.

    Raises ``SpecdashError`` where that cannot be told, ``Ambiguous`` where it might be several.
    """
    from msgspec.structs import replace

    from specdash.monitor.spans import ago
    from specdash.operations.found import Memory
    from specdash.operations.which import some
    from specdash.operations.wishes import from_found, variant_of

    variant = variant_of(here.profile, here.given.get("variant"))
    name = variant.server if variant else _profile_name(here)
    if name is not None:
        return _of_profile(here, name)
    known = Memory().all(here.session.target)
    seen = [found for found in known if _is_meant(here, found)]
    mine = here.profile.servers_of(here.host_name) if here.host_name else {}
    if not seen and here.wanted is not None and (mine or known):
        names = some([*mine, *(found.launch.name for found in known)])
        raise SpecdashError(f"how {here.wanted} is started is not known here", f"that of {names} is")
    if not seen:
        raise SpecdashError(
            "nothing is known that could be launched here",
            "specdash init TARGET writes a profile while one runs; dashboard, kill and restart remember it",
        )
    found = _only(here, seen)
    wish = from_found(found, _last(here, found.launch.engine), variant)
    when = f", {ago(here.state.now - found.taken)} ago" if found.taken else ""
    return replace(wish, source=f"no profile tells: as {found.launch.name} was started, last seen here{when}")


def _only(here: Scene, seen: Sequence[Found]) -> Found:
    """The start that is meant, of what does not run before what does. Raises ``Ambiguous``."""
    from specdash.operations.which import Ambiguous, alive, some

    running = {server.name for server in here.state.servers if alive(server)}
    might = [found for found in seen if found.launch.name not in running] or seen
    if len(might) > 1:
        names = some([found.launch.name for found in might])
        raise Ambiguous(f"{len(might)} servers were seen here: say which one by --server", names)
    return might[0]


def _is_meant(here: Scene, found: Found) -> bool:
    """A start that was seen is the one that is asked for: by its name, its port, or the pid that it had."""
    if here.wanted is None:
        return True
    name = found.launch.name
    had = (server.name for server in here.state.servers if here.wanted.means(server))
    return here.wanted.word in (name, name.rpartition(":")[2]) or name in had


def wish_for(here: Scene, sight: Sight) -> Wish:
    """How the server that runs is started again: by the profile where it names it, else as it is now.

    Of one that has only left something behind: as it was. Raises ``SpecdashError`` where that was not seen.
    """
    from specdash.operations.found import Memory, launch_of
    from specdash.operations.sight import titles
    from specdash.operations.which import of_profile
    from specdash.operations.wishes import from_found, variant_of

    variant = variant_of(here.profile, here.given.get("variant"))
    found: Found | None = None
    if sight.orphaned(titles()):
        known = Memory().all(here.session.target)
        found = next((one for one in known if one.launch.name == sight.server.name), None)
    else:
        found = launch_of(here.state, sight)
        if not here.given.get("dry_run"):
            Memory().keep(found)
    name = variant.server if variant else here.wanted.described([sight.server]) if here.wanted else None
    name = name or of_profile(here.profile, here.host_name, sight.server)
    if name is not None:
        return _of_profile(here, name)
    if found is None:
        hint = "a profile can start it, or `specdash init` while it runs writes one"
        raise SpecdashError("its command line was not seen", hint)
    return from_found(found, _last(here, found.launch.engine))


def _profile_name(here: Scene) -> str | None:
    """The only server of this host in the profile, or the one that --server means."""
    from specdash.operations.which import Ambiguous, some

    if here.host_name is None:
        return None
    mine = here.profile.servers_of(here.host_name)
    if here.wanted is not None:
        return here.wanted.described(here.state.servers)
    if len(mine) > 1:
        whose = f"the profile has {len(mine)} servers on {here.host_name}"
        raise Ambiguous(f"{whose}: say which one by --server", some(list(mine)))
    return next(iter(mine), None)


def _of_profile(here: Scene, name: str) -> Wish:
    from specdash.operations.wishes import from_profile, variant_of
    from specdash.profile.keys import key_variable

    server = here.profile.servers[name]
    variant = variant_of(here.profile, here.given.get("variant"))
    return from_profile(name, server, variant, _last(here, server.engine), key_variable(here.profile, name))


def _last(here: Scene, engine: str) -> str | None:
    from specdash.operations.wishes import last_good

    return last_good(here.journal, here.session.target, engine)
