"""How a found server was started: taken while it lives, and remembered for a later launch.

What is kept on disk has no keys or passwords in it; what could not be read or was not kept is said.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import platformdirs

from specdash import ownfiles
from specdash.monitor.state import HostState, Server
from specdash.operations.managers import Manager
from specdash.operations.scrub import launch_without_secrets
from specdash.operations.sight import SESSION_ONLY, Sight
from specdash.operations.work import How, Launch
from specdash.sanitise import REDACTED

KEPT = 50


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A server's start, as far as it could be seen."""

    target: str
    launch: Launch
    version: str | None = None
    taken: float = 0.0
    """When, on the host's clock."""
    missing: tuple[str, ...] = ()
    """What could not be read, each a sentence."""


def launch_of(state: HostState, sight: Sight) -> Found:
    """How to start this server again as it was."""
    server = sight.server
    how, unit = _way(sight.manager)
    missing = list(sight.missing)
    log, told = _log(server, sight.cwd)
    if told:
        missing.append(told)
    elsewhere = how == "process" and _elsewhere(sight.manager)
    if elsewhere:
        missing.append("its command line: it was given inside a container, and means nothing outside")
    host = state.host
    foreign = bool(server.user and host and server.user != host.user)
    launch = Launch(
        name=server.name,
        engine=server.engine,
        argv=() if elsewhere else sight.argv,
        env={} if how != "process" else _environment(sight.env),
        whole_env=how == "process" and sight.env is not None,
        cwd=sight.cwd if how == "process" else None,
        log=log,
        user=server.user if foreign else None,
        how=how,
        unit=unit,
    )
    return Found(
        target=state.target, launch=launch, version=server.version, taken=state.now, missing=tuple(missing)
    )


def _way(manager: Manager | None) -> tuple[How, str | None]:
    """Whoever stopped it starts it again."""
    if manager is not None and manager.name == "systemd" and "--user" not in manager.stop:
        return "systemd", manager.stop[-1]
    if manager is not None and manager.name == "docker" and manager.stop:
        return "docker", manager.stop[-1]
    return "process", None


def _elsewhere(manager: Manager | None) -> bool:
    """It was started inside a container that is not started by its name here."""
    return manager is not None and manager.name in ("docker", "podman", "kubernetes")


def _environment(env: dict[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (env or {}).items() if name not in SESSION_ONLY}


def _log(server: Server, cwd: str | None) -> tuple[str | None, str | None]:
    """Where its output goes on; a file of ours where it went to a terminal or into a pipe."""
    if server.log is not None and server.log.path is not None:
        return server.log.path, None
    name = server.name.replace(":", "-").replace("/", "-")
    path = f"/tmp/specdash-{name}.log"
    was = server.log.says if server.log is not None else "its output could not be seen"
    return path, f"its log: {was}; a new one is written to {path}"


class Memory:
    """Starts that were seen, by host and name: one small file for each, readable by you alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or platformdirs.user_state_path("specdash") / "found"

    def keep(self, found: Found) -> None:
        """Remember it, without secrets. What cannot be written is not remembered."""
        found = msgspec.structs.replace(found, launch=launch_without_secrets(found.launch))
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(found.target, found.launch.name)
            part = path.with_name(f".{path.name}.{os.getpid()}")
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(found))
            part.replace(path)
        except OSError:
            return

    def all(self, target: str) -> list[Found]:
        """What was seen on this host, the newest first."""
        seen = [found for path in self._folder.glob("*.json") if (found := _read(path)) is not None]
        mine = [found for found in seen if found.target == target]
        return [_usable(found) for found in sorted(mine, key=lambda found: found.taken, reverse=True)]

    def _path(self, target: str, name: str) -> Path:
        plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{target}-{name}")
        return self._folder / f"{plain}.json"


def _usable(found: Found) -> Found:
    """Variables that were not kept are left out and named; a command line that lost a word stays unusable."""
    launch = found.launch
    lost = sorted(name for name, value in launch.env.items() if value == REDACTED)
    env = {name: value for name, value in launch.env.items() if name not in lost}
    broken = any(REDACTED in word for word in launch.argv)
    told = (f"{', '.join(lost)} in its environment: secrets are not kept; it starts without",) if lost else ()
    launch = msgspec.structs.replace(launch, env=env, secrets_lost=broken)
    return msgspec.structs.replace(found, launch=launch, missing=(*found.missing, *told))


def _read(path: Path) -> Found | None:
    try:
        return msgspec.json.decode(ownfiles.data_of(path), type=Found)
    except (OSError, ValueError):
        return None
