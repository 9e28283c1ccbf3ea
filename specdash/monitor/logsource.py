"""Where the log of a server is: from what its fd 1 and fd 2 point to, and from who manages it."""

from __future__ import annotations

import re

from specdash.monitor.samples import Process
from specdash.monitor.serverparts import LogSource

_DOCKER = re.compile(r"/docker[-/](?P<id>[0-9a-f]{64})")
_PODMAN = re.compile(r"/libpod-(?P<id>[0-9a-f]{64})")
_POD = re.compile(r"kubepods.*?pod(?P<uid>[0-9a-f]{8}[-_][0-9a-f_-]{27,})")
_UNIT = re.compile(r"/(?P<unit>[^/]+\.service)$")
_DOCKER_FILE = "/var/lib/docker/containers/{id}/{id}-json.log"
"""Where docker's own log driver, json-file, writes; only root may read there."""
_GIVE = "give --log PATH where it is also kept in a file"


def log_source(main: Process, given: str | None, *, inside: bool = False) -> LogSource:
    """Where the log goes, in words. ``inside``: we are in a container ourselves, its manager is not."""
    if given:
        return LogSource(path=given, kind="given", says=f"{given} (as given)")
    candidates = [("fd 2", main.err), ("fd 1", main.out)]
    for name, target in candidates:
        if target and _is_file(target):
            both = " and fd 1" if name == "fd 2" and main.out == target else ""
            # A path of another namespace means nothing here; the kernel shows its files below the process.
            path = f"/proc/{main.pid}/root{target}" if main.nspid is not None and not inside else target
            return LogSource(path=path, kind="file", says=f"{target} ({name}{both})")
    managed = None if inside else _managed(main)
    if managed is not None:
        return managed
    for name, target in candidates:
        if target:
            return _no_file(name, target)
    return LogSource(path=None, kind="unknown", says="its output files could not be read: give --log PATH")


def _managed(main: Process) -> LogSource | None:
    """What keeps the log where a manager took the output: docker's file, or how to get at it."""
    group = main.cgroup or ""
    taken = [target for target in (main.err, main.out) if target]
    if taken and all(target == "/dev/null" for target in taken):
        return None
    if found := _DOCKER.search(group):
        path, short = _DOCKER_FILE.format(id=found["id"]), found["id"][:12]
        return LogSource(path=path, kind="docker", says=f"docker's file of container {short} ({path})")
    if found := _PODMAN.search(group):
        return _kept(f"podman keeps it: podman logs -f {found['id'][:12]} >> FILE, then --log FILE")
    if found := _POD.search(group):
        uid = found["uid"].replace("_", "-")
        return _kept(f"Kubernetes keeps it: give --log with the file under /var/log/pods/*_{uid}/ here")
    unit = _UNIT.search(group)
    if unit and any(target.startswith("socket:") for target in taken):
        return _kept(f"goes to the journal: journalctl -fu {unit['unit']} >> FILE, then --log FILE")
    return None


def _kept(says: str) -> LogSource:
    return LogSource(path=None, kind="journal", says=says)


def _is_file(target: str) -> bool:
    return target.startswith("/") and not target.startswith(("/dev/", "/proc/")) and "(deleted)" not in target


def _no_file(name: str, target: str) -> LogSource:
    if target.endswith("(deleted)"):
        says = f"{name} goes to a deleted file ({target.removesuffix(' (deleted)')}): {_GIVE}"
        return LogSource(path=None, kind="deleted", says=says)
    if target.startswith(("/dev/pts/", "/dev/tty")):
        pane = "in tmux, pipe-pane -o 'cat >> FILE' begins one"
        says = f"{name} goes to a terminal ({target}): {_GIVE}; {pane}"
        return LogSource(path=None, kind="terminal", says=says)
    if target == "/dev/null":
        return LogSource(path=None, kind="null", says=f"{name} goes to /dev/null: this server keeps no log")
    if target.startswith("pipe:"):
        return LogSource(path=None, kind="pipe", says=f"{name} goes into a pipe to another program: {_GIVE}")
    if target.startswith("socket:"):
        return LogSource(path=None, kind="socket", says=f"{name} goes into a socket: {_GIVE}")
    return LogSource(path=None, kind="unknown", says=f"{name} goes to {target}: {_GIVE}")
