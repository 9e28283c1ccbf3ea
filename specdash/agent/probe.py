"""Facts that are wanted before a launch: ports, room, limits, versions. Nothing is kept, nothing decided."""

import errno
import json
import os
import resource
import socket
import subprocess

from specdash.agent import managers, sockets
from specdash.agent.census import Census, describe
from specdash.agent.patience import NoAnswer
from specdash.agent.records import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.patience import Patience

    Json = dict[str, Any]

VERSIONS = """
import json, platform, sys
found = {}
try:
    from importlib import metadata
except ImportError:
    metadata = None
for name in sys.argv[1:]:
    try:
        if metadata is not None:
            found[name] = metadata.version(name)
        else:
            import pkg_resources
            found[name] = pkg_resources.get_distribution(name).version
    except Exception:
        found[name] = None
print(json.dumps({"version": platform.python_version(), "executable": sys.executable, "modules": found}))
"""
"""Reads what is installed, without importing any of it: an engine's import takes half a minute."""
ASK_LIMIT = 20.0
LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "memlock": resource.RLIMIT_MEMLOCK,
    "nproc": resource.RLIMIT_NPROC,
}


def probe(acts: "Acts", request: "Json") -> "Json":
    """The verb."""
    patience = acts.patience()
    answer: "Json" = {
        "ports": _ports(acts, patience, [int(port) for port in request.get("ports") or ()]),
        "paths": [_room(patience, str(path)) for path in request.get("paths") or ()],
        "limits": {name: list(resource.getrlimit(number)) for name, number in LIMITS.items()},
        "shm": None,
        "python": None,
    }
    try:
        shm = patience.call(os.statvfs, acts.host.shm)
        total, free = shm.f_blocks * shm.f_frsize >> 20, shm.f_bavail * shm.f_frsize >> 20
        answer["shm"] = {"total_mib": total, "used_mib": total - free}
    except OSError:
        pass
    if request.get("python") or request.get("modules"):
        names = [str(name) for name in request.get("modules") or ()]
        answer["python"] = _versions(str(request.get("python") or "python3"), names)
    patience.close()
    return answer


def _ports(acts: "Acts", patience: "Patience", ports: "list[int]") -> "list[Json]":
    """Whether each could be bound now, on every address, and who listens there."""
    if not ports:
        return []
    inodes = sockets.listeners(acts.host.proc)
    wanted = {inode for inode, (port, _) in inodes.items() if port in ports}
    found: "dict[int, list[Json]]" = {port: [] for port in ports}
    census = Census(acts.host, acts.records)
    for pid, stat in census.stats.items() if wanted else ():
        try:
            held = patience.call(sockets.held, "%s/%d/fd" % (acts.host.proc, pid)) & wanted
        except OSError:
            continue
        for port, address in sorted({inodes[inode] for inode in held}):
            found[port].append(dict(describe(acts.host, patience, pid, stat), address=address))
    listening = {port for port, _ in inodes.values()}
    return [dict(_bind(port, port in listening), listeners=found[port]) for port in ports]


def _bind(port: int, listened: bool) -> "Json":
    """A port is *lingering* when only old connections are in the way; most servers start all the same."""
    error = _try(socket.AF_INET, "0.0.0.0", port) or _try(socket.AF_INET6, "::", port)
    lingering = error is not None and not listened and error.errno == errno.EADDRINUSE
    return {
        "port": port,
        "free": error is None,
        "lingering": lingering,
        "error": in_words(error) if error else None,
    }


def _try(family: int, address: str, port: int) -> "OSError | None":
    """Bind without SO_REUSEADDR, which would hide old connections; None where it works."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as link:
            if family == socket.AF_INET6:
                link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            link.bind((address, port))
    except OSError as error:
        return None if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL) else error
    except OverflowError as error:
        return OSError(errno.EINVAL, str(error))
    return None


def _room(patience: "Patience", path: str) -> "Json":
    """Room where a path is, or would be made: in the nearest folder above it that exists."""
    row: "Json" = {"path": path, "folder": None, "free_mib": None, "total_mib": None, "error": None}
    try:
        folder = os.path.abspath(path)
        while folder != "/" and not patience.call(os.path.exists, folder):
            folder = os.path.dirname(folder)
        space = patience.call(os.statvfs, folder)
    except NoAnswer:
        return dict(row, error="no answer from the file system", writable=None)
    except OSError as error:
        return dict(row, error=in_words(error), writable=None)
    size = space.f_frsize
    row.update(folder=folder, writable=os.access(folder, os.W_OK))
    row.update(free_mib=space.f_bavail * size >> 20)
    row.update(total_mib=(space.f_blocks - space.f_bfree + space.f_bavail) * size >> 20)
    return row


def _versions(python: str, names: "list[str]") -> "Json":
    """What an interpreter has installed, asked of itself."""
    answer: "Json" = {"version": None, "executable": None, "modules": {}, "error": None}
    try:
        status, out, said = managers.outcome([python, "-c", VERSIONS] + names, ASK_LIMIT)
    except OSError as error:
        return dict(answer, error=in_words(error))
    except subprocess.TimeoutExpired:
        return dict(answer, error="no answer from %s for %d s" % (python, ASK_LIMIT))
    try:
        answer.update(json.loads(out))
    except ValueError:
        words = said.splitlines()
        answer["error"] = "%s: %s" % (python, words[-1] if words else "exit status %d" % status)
    return answer
