"""What the host must have for a launch: clean cards, a free port, room, limits, files. Pure."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence

from specdash.monitor.state import Gpu, HostState, Server
from specdash.operations.checks import Line, bad, gib, ok, unknown, warn
from specdash.operations.freeing import indexes, is_clean, says
from specdash.operations.replies import Stat
from specdash.operations.replies_probe import Listener, Place, Port, Shm
from specdash.wording import named

SHM_LEAST_MIB, SHM_USUAL_MIB = 256, 2048
"""NCCL and multiprocessing need it; docker gives 64 MiB unless told otherwise."""
DISK_LEAST_MIB, DISK_USUAL_MIB = 256, 4096
NOFILE, NPROC = 4096, 4096
NOBODY: Mapping[int, str] = {}


def gpus(state: HostState, wanted_cards: Sequence[int], wanted: int | None) -> Iterator[Line]:
    """The cards that the launch will use are there, answer, and are at their baseline."""
    if state.gpu_error:
        yield unknown("gpus", "not looked at: see driver")
        return
    if not state.gpus:
        yield bad("gpus", "no GPU is seen", "see `doctor`")
        return
    chosen = [gpu for gpu in state.gpus if gpu.card.index in wanted_cards]
    if wanted is not None and len(chosen) < wanted:
        yield bad("gpus", f"{len(chosen)} of the {wanted} GPUs that it wants are there", "lower --tp")
    broken = [gpu for gpu in chosen if gpu.card.error]
    for gpu in broken:
        yield bad("gpus", f"GPU {gpu.card.index}: {gpu.card.error}", "nvidia-smi -q; a reset or a reboot")
    dirty = [gpu for gpu in chosen if gpu not in broken and is_clean(gpu) is False]
    if len(dirty) > 2:
        most = max(gpu.card.used_mib or 0 for gpu in dirty)
        words = f"GPU {indexes(dirty)} are not clean, up to {gib(most)} in use; {says(dirty[0], state)}"
        other = "`clean` (C) ends what dead servers left, `kill` (K) a server"
        yield bad("gpus", words, _server_of(dirty, state) or other)
    elif dirty:
        other = "`clean` (C) ends what holds it"
        yield bad("gpus", "; ".join(says(gpu, state) for gpu in dirty), _server_of(dirty, state) or other)
    blind = [gpu for gpu in chosen if gpu not in broken and is_clean(gpu) is None]
    if blind:
        yield unknown("gpus", f"GPU {indexes(blind)}: memory or owners cannot be read")
    if chosen and not (broken or dirty or blind):
        most = max(gpu.card.used_mib or 0 for gpu in chosen)
        yield ok("gpus", f"GPU {indexes(chosen)} clean, at most {most} MiB in use")


def _server_of(cards: Sequence[Gpu], state: HostState) -> str | None:
    """What to do where one running server owns all of it; None: something else does, too."""
    running = {server.key: server.name for server in state.servers if server.gone_at is None}
    names = {running.get(owner.server or "") for gpu in cards for owner in gpu.owners}
    return _restarts(name) if len(names) == 1 and (name := names.pop()) else None


def _restarts(name: str) -> str:
    return f"that is {name}, which `restart` (R) ends first"


def port(
    key: str,
    found: Port | None,
    number: int | None,
    servers: Mapping[int, str] = NOBODY,
    coming: Server | None = None,
) -> Line:
    """A port can be bound, and stays free.

    ``servers``: main pid → name of the inference servers that run there. ``coming``: the one that still
    starts and will listen on it.
    """
    if number is None:
        return unknown(key, "not on the command line")
    if found is None:
        return unknown(key, f"{number} could not be tried")
    if found.listeners:
        who = found.listeners[0]
        mine = _restarts(servers[who.pid]) if who.pid in servers else None
        return bad(key, f"{number} is taken by {_listener(who)}", mine or "stop that, or another port")
    if coming is not None:
        seen = f"{number} will be taken by {coming.name} (pid {coming.pid}), which is {coming.state}"
        return bad(key, seen, _restarts(coming.name))
    if found.free:
        return ok(key, f"{number} is free")
    if found.lingering:
        return warn(key, f"{number}: only old connections linger", "wait a minute if the start fails on it")
    return bad(key, f"{number}: {found.error or 'cannot be bound'}", "another port")


def _listener(one: Listener) -> str:
    who = f" ({one.user})" if one.user else ""
    return f"{one.pid} {one.name}{who}"


def disk(key: str, place: Place | None, path: str, *, ours: bool = True) -> Line:
    """There is room where it writes, and it may write there: no start of ours makes its folder.

    ``ours``: the log is opened by whoever starts it here, not by a manager, which may make its folder.
    """
    if place is None or place.error or place.free_mib is None:
        why = place.error if place and place.error else "could not be looked at"
        return unknown(key, named(path, why))
    if (missing := _no_folder(place, path)) is not None:
        seen = f"{missing} is not there, so {path} cannot be written"
        return (bad if ours else warn)(key, seen, f"on the host: mkdir -p {shlex.quote(missing)}")
    seen = f"{gib(place.free_mib)} free where {path} lies"
    if place.free_mib < DISK_LEAST_MIB:
        return bad(key, seen, "free some space there")
    if place.writable is False:
        return bad(key, f"{place.folder or path} is not writable", "another --log, or the right user")
    return warn(key, seen) if place.free_mib < DISK_USUAL_MIB else ok(key, seen)


def _no_folder(place: Place, path: str) -> str | None:
    """The folder of a path, where only one above it exists."""
    whole = posixpath.normpath(path)
    above = posixpath.dirname(whole)
    there = not posixpath.isabs(path) or place.folder in (None, whole, above)
    return None if there else above


def shm(found: Shm | None, ranks: int) -> Line:
    """Shared memory for NCCL and between the processes."""
    if found is None or found.total_mib is None or found.used_mib is None:
        return unknown("shm", "/dev/shm could not be looked at")
    free = found.total_mib - found.used_mib
    seen = f"{gib(free)} of {gib(found.total_mib)} free in /dev/shm"
    if found.total_mib < SHM_LEAST_MIB and ranks > 1:
        return bad("shm", seen, "docker: --shm-size=32g or --ipc=host")
    if free < SHM_LEAST_MIB and ranks > 1:
        return bad("shm", seen, "`clean` removes what dead servers left there")
    return (
        warn("shm", seen, "docker: --shm-size=32g") if free < SHM_USUAL_MIB and ranks > 1 else ok("shm", seen)
    )


def ulimits(limits: Mapping[str, tuple[int, int]]) -> Line:
    """Open files and processes."""
    if not limits:
        return unknown("ulimits", "could not be read")
    low = []
    for name, least, flag in (("nofile", NOFILE, "-n"), ("nproc", NPROC, "-u")):
        soft = limits.get(name, (-1, -1))[0]
        if 0 <= soft < least:
            low.append(f"{name} {soft} (ulimit {flag})")
    if low:
        return warn("ulimits", f"low: {', '.join(low)}", "raise them for the user that starts it")
    return ok("ulimits", f"{limits['nofile'][0] if 'nofile' in limits else '?'} open files")


def driver(state: HostState) -> Line:
    """NVML answers."""
    if state.gpu_error:
        return bad("driver", state.gpu_error, "see `doctor`")
    return ok("driver", state.driver) if state.driver else unknown("driver", "its version is not known")


def files(found: Sequence[Stat]) -> Iterator[Line]:
    """What is wanted after the start is there before it: a benchmark found missing later costs the start."""
    for stat in found:
        if not stat.exists:
            yield bad("files", named(stat.path, stat.error or "no such file"), "put it there first")
        elif not stat.readable:
            yield bad("files", f"{stat.path} cannot be read by us", "chmod, or the right user")
        elif stat.kind == "file" and not stat.size:
            yield bad("files", f"{stat.path} is empty", "put it there first")
        else:
            yield ok("files", f"{stat.path}, {stat.size} bytes" if stat.kind == "file" else stat.path)
