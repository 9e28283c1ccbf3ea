"""Where a server is reached, and who else is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specdash.monitor.commandline import flag, launch_facts
from specdash.monitor.memory import PortOwner, ServerMemory
from specdash.monitor.samples import Process

_EVERYWHERE = frozenset({"0.0.0.0", "::", "*", ""})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def address(memory: ServerMemory) -> tuple[int | None, str | None]:
    """Port and address: what really listens before what was asked for."""
    family, reading = memory.family, memory.reading
    facts = launch_facts(family.main.argv)
    # Workers without their main process have no command line that would name a port.
    usual = None if family.orphaned else memory.default_port
    wanted = facts.port or reading.port or usual
    for process in (family.main, *family.members):
        if wanted in process.ports:
            return wanted, process.bind
    if facts.port is None and reading.port is None and family.main.ports:
        return min(family.main.ports), family.main.bind
    return wanted, None


def listens_itself(memory: ServerMemory, port: int | None) -> bool:
    """One of its own processes listens there."""
    return any(port in process.ports for process in (memory.family.main, *memory.family.members))


def listeners(table: Iterable[Process]) -> Mapping[int, tuple[Process, ...]]:
    """Port → who listens on it, as far as it is known."""
    found: dict[int, tuple[Process, ...]] = {}
    for process in table:
        for port in process.ports:
            found[port] = (*found.get(port, ()), process)
    return found


def port_owner(
    memory: ServerMemory, listening: Mapping[int, tuple[Process, ...]], at: float
) -> PortOwner | None:
    """Whose the port is that this server wants, where it is not the server's; None where nobody has it."""
    port, _ = address(memory)
    if port is None or listens_itself(memory, port) or memory.family.main.other_net:
        return None
    mine = {memory.family.main.pid, *(process.pid for process in memory.family.members)}
    for process in listening.get(port, ()):
        if process.pid in mine or process.other_net or not _collide(memory, process):
            continue
        known = memory.port_owner
        since = known.since if known is not None and known.pid == process.pid else at
        return PortOwner(
            pid=process.pid, name=_called(process), port=port, started=process.started, since=since
        )
    return None


def _collide(memory: ServerMemory, other: Process) -> bool:
    """Both want the same address, or one of them all addresses."""
    wanted = flag(memory.family.main.argv, "--host") or memory.reading.bind
    if wanted is None or other.bind is None or wanted in _EVERYWHERE or other.bind in _EVERYWHERE:
        return True
    return wanted == other.bind or {wanted, other.bind} <= _LOOPBACK


def _called(process: Process) -> str:
    return process.comm or (process.argv[0].rpartition("/")[2] if process.argv else f"pid {process.pid}")
