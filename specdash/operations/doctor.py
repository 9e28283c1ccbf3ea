"""What can be seen and done on a host, and why not the rest."""

from __future__ import annotations

from collections.abc import Iterator

from specdash import __version__
from specdash.engines.loader import GENERIC
from specdash.errors import RequestError
from specdash.intake.rules import default_rules
from specdash.monitor.state import HostFacts, HostState, Server
from specdash.operations.acts import Acts, Hands
from specdash.operations.checks import Line, bad, gib, ok, unknown, warn
from specdash.remote.link import NO_SUDO

PCI_BUS = "/proc/bus/pci/devices"
"""A line for each device; its second word is vendor and device, four hexadecimal digits each."""
NVIDIA = "10de"
_BOARDS = ("/dev/dxg", "/dev/nvhost-gpu", "/dev/nvmap")
"""Of WSL and of boards: their cards are on no PCI bus."""
DRIVER_TRACES = ("/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia", *_BOARDS)
NO_CARD = "none: no NVIDIA card is on the PCI bus, and no driver of one is there"


async def examine(acts: Acts, *, watch: bool) -> tuple[Line, ...]:
    """One line for each thing that matters."""
    state = acts.state
    hands = Hands(acts)
    gpus = [ok("gpus", NO_CARD)] if state.gpu_error and await _has_no_card(hands) else _gpus(state)
    lines = [*_link(state), *_engines(), *_host(state, watch), *gpus, *_servers(state)]
    lines += await _holders(hands, state)
    return tuple(lines)


def _link(state: HostState) -> Iterator[Line]:
    rtt = f", {state.link.rtt_ms:.0f} ms" if state.link.rtt_ms is not None else ""
    yield (
        ok("link", f"{state.target}{rtt}")
        if state.link.state == "live"
        else warn("link", f"{state.link.state}: {state.link.reason or '?'}")
    )
    yield ok("specdash", __version__)


def _engines() -> Iterator[Line]:
    rules = default_rules()
    known = [grammar.spec.title for grammar in rules.grammars if grammar.name != GENERIC]
    yield ok("engines", ", ".join(known))
    for problem in rules.problems:
        yield warn("engines", problem, "mend the file, or take it out of that folder")


def _host(state: HostState, watch: bool) -> Iterator[Line]:
    host = state.host
    if host is None:
        yield bad("host", "it has not said who it is")
        return
    kind = ", SIMULATED" if host.simulated else ""
    yield ok("host", f"{host.name}, {host.cpus} CPUs{kind}")
    yield _python(host)
    yield from _rights(host, state)
    yield _acting(host, watch)
    yield _kernel(host, state)
    machine = state.machine
    if machine is not None and machine.ram_total_mib:
        yield ok("memory", f"{gib(machine.ram_used_mib or 0)} of {gib(machine.ram_total_mib)} in use")


def _python(host: HostFacts) -> Line:
    if host.python:
        return ok("python", host.python)
    seen = "none there: a shell runs nvidia-smi and reads /proc every 5 s, logs every second"
    return warn("python", seen, "install python3 on the host, 3.6 or newer: nothing else is needed")


def _rights(host: HostFacts, state: HostState) -> Iterator[Line]:
    if host.uid == 0:
        yield ok("rights", "root: every process can be seen and signalled")
    elif state.processes_denied:
        seen = f"{host.user}: {state.processes_denied} processes of other users are closed to us"
        yield warn("rights", seen, "--sudo, or connect as root")
    else:
        yield ok("rights", host.user)
    for note in state.notes:
        if note.startswith(NO_SUDO):
            yield warn("sudo", note.removeprefix(f"{NO_SUDO}: "), "a rule in sudoers, or connect as root")
    if host.container:
        yield warn(
            "container",
            f"this is the inside of one ({host.container}): owners outside it are not visible",
            "cleanup_via in the profile names the machine outside",
        )


def _acting(host: HostFacts, watch: bool) -> Line:
    if not host.python:
        return unknown("acting", "nothing can be changed: that needs Python on the host")
    if watch or host.watch_only:
        return ok("acting", "watch only: nothing can be changed, as asked")
    return ok("acting", "kill, clean, launch, restart, patch")


def _kernel(host: HostFacts, state: HostState) -> Line:
    unseen = "Xid reports and out-of-memory kills stay unseen"
    if not host.python:
        return unknown("kernel", f"its log is not read without Python: {unseen}")
    if state.kernel_denied:
        return warn("kernel", f"its log cannot be read ({state.kernel_denied}): {unseen}", "--sudo, or root")
    return ok("kernel", "its log can be read")


def _gpus(state: HostState) -> Iterator[Line]:
    if state.gpu_error:
        yield bad(
            "gpus", state.gpu_error, "nvidia-smi on the host; the driver's library must be there and match"
        )
        return
    if not state.gpus:
        yield unknown("gpus", "none was seen")
        return
    names = {gpu.card.name for gpu in state.gpus if gpu.card.name}
    yield ok(
        "gpus",
        f"{len(state.gpus)} × {', '.join(sorted(map(str, names))) or '?'}, driver {state.driver or '?'}",
    )
    for gpu in state.gpus:
        if gpu.card.error:
            yield bad("gpus", f"GPU {gpu.card.index}: {gpu.card.error}")
        elif gpu.card.missing:
            yield unknown("gpus", f"GPU {gpu.card.index} does not tell {', '.join(gpu.card.missing)}")
    if any(gpu.card.memory_call == "v1" for gpu in state.gpus):
        yield warn("gpus", "an old driver: used memory includes the driver's own reserve")


def _servers(state: HostState) -> Iterator[Line]:
    living = [server for server in state.servers if server.gone_at is None]
    if not living:
        yield ok("servers", "none of these engines runs")
    for server in living:
        yield _log(server)


def _log(server: Server) -> Line:
    log = server.log
    if log is None or log.path is None:
        return warn("log", f"{server.name}: {log.says if log else 'not seen'}", "--log PATH")
    if log.error:
        return bad("log", f"{server.name}: {log.path}: {log.error}", "--sudo, or the right user")
    return ok("log", f"{server.name}: {log.says}, {server.log_lines} lines")


async def _has_no_card(hands: Hands) -> bool:
    """No NVIDIA card is on its bus, and nothing of a driver is there: nothing is broken."""
    try:
        bus = await hands.read_file(PCI_BUS)
        traces = await hands.stat_files(DRIVER_TRACES)
    except RequestError:
        return False
    ids = [line.split()[1] for line in bus.bytes.decode("ascii", "replace").splitlines() if "\t" in line]
    nvidia = any(one.startswith(NVIDIA) for one in ids)
    return bool(ids) and not nvidia and not any(one.exists for one in traces)


async def _holders(hands: Hands, state: HostState) -> list[Line]:
    """Whether whoever holds a device can be seen at all."""
    try:
        found = await hands.holders()
    except RequestError as error:
        return [unknown("holders", error.message)]
    owners = sum(holder.kind == "owner" for holder in found.holders)
    seen = f"{owners} own GPU memory, {len(found.holders) - owners} only have a device open"
    if found.denied and not (state.host and state.host.uid == 0):
        return [warn("holders", f"{seen}; {found.denied} processes are closed to us", "--sudo, or root")]
    return [ok("holders", seen)]
