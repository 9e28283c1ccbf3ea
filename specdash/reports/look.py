"""The outcome of one look at a host, as lines of text for a person (``specdash status``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specdash.monitor.glyphs import SEVERITY_GLYPHS, rail_glyph, server_glyph, state_name
from specdash.monitor.importance import by_importance
from specdash.monitor.naming import host_in_full
from specdash.monitor.serverparts import LogSource
from specdash.monitor.signs import folded, in_words
from specdash.monitor.spans import ago
from specdash.monitor.spans import count as counted
from specdash.monitor.speech import ANY_TARGET
from specdash.monitor.state import Gpu, HostState, Owner, Server
from specdash.monitor.status import outlived, unread

NO_LOGS: Mapping[str, str] = {}


def describe(state: HostState, logs: Mapping[str, str] = NO_LOGS) -> Iterator[str]:
    """The whole picture, most important first. ``logs``: what the profile says of a server's log, by key."""
    yield _headline(state)
    if state.old:
        heard_at = state.link.heard_at
        when = f"{ago(state.now - heard_at)} ago" if heard_at is not None else "before"
        yield f"▲ connection {state.link.state}: what follows was so {when}, when the host was last heard"
    for alert in state.alerts:
        if alert.severity != "info":
            yield f"{SEVERITY_GLYPHS[alert.severity]} {alert.text}"
    yield from dict.fromkeys(
        f"▲ --log {server.log.path} cannot be read: {server.log.error}; without --log its own is looked for"
        for server in state.servers
        if server.log and unread(server)
    )
    if len(state.servers) > 1:
        first = by_importance(state)[0].name
        yield f"{len(state.servers)} servers; one alone: specdash status {state.typed} --server {first}"
    for server in by_importance(state):
        yield ""
        which = f" --server {server.name}" if len(state.servers) > 1 else ""
        yield from describe_server(server, state.now, state.typed, which, logs.get(server.key))
    if not state.servers:
        seen = state.processes_at is not None
        yield "no inference server is running here" if seen else "which servers run here was not seen yet"
    yield ""
    yield from _gpus(state)


def _headline(state: HostState) -> str:
    host, machine = state.host, state.machine
    parts = [f"{host_in_full(state)} as {host.user}" if host else state.target]
    if host:
        if host.simulated:
            parts.append("SIMULATED")
        elif host.container and state.gpus:
            parts.append(f"in a container ({host.container}): owners outside it are not visible")
    if machine and machine.ram_total_mib:
        used = "?" if machine.ram_used_mib is None else f"{machine.ram_used_mib / 1024:.0f}"
        parts.append(f"RAM {used}/{machine.ram_total_mib / 1024:.0f} GiB")
    return " · ".join(parts)


def describe_server(
    server: Server, now: float, target: str = "TARGET", which: str = "", log: str | None = None
) -> Iterator[str]:
    """One server: state, sentence of truth, phases, readiness, figures, log.

    ``target`` and ``which``: how the operator calls the host, and this server where there are several.
    ``log``: where the profile says that its output goes.
    """
    about = " · ".join(filter(None, (server.model, server.speculation, server.parallel, server.version)))
    doubt = " (suspect)" if server.verdict.word == "suspect" else ""
    yield f"{server_glyph(server)} {server.name} {state_name(server).upper()}{doubt}   {about}"
    yield f"  {server.truth}"
    rail = []
    for item in server.rail:
        count = f" {item.progress.done}/{item.progress.total}" if item.progress else ""
        took = f" {ago(item.took_s)}" if item.took_s is not None else ""
        usual = item.usual_s is not None and item.mark != "done"
        took += f" (usual {ago(item.usual_s)})" if usual else ""
        reached = "reached " if item.mark == "reached" else ""
        rail.append(f"{rail_glyph(item, server)} {reached}{item.title}{count}{took}")
    if rail:
        yield "  " + " ─ ".join(rail)
    if server.eta_s is not None:
        starts = "1 start" if server.starts_known == 1 else f"{server.starts_known} starts"
        yield f"  ready in about {ago(server.eta_s)}, by {starts} of this kind"
    yield from _why(server, target, which)
    yield "  " + "   ".join(f"{lamp.name} {lamp.value}" for lamp in server.lamps)
    figures = server.figures
    if figures.at is not None:
        told = (
            ("tok/s", figures.tok_s, ".1f"),
            ("running", figures.running, "d"),
            ("waiting", figures.waiting, "d"),
            ("KV %", figures.kv_pct, ".1f"),
            ("accept", figures.accept_len, ".2f"),
        )
        yield "  " + "   ".join(f"{name} {value:{form}}" for name, value, form in told if value is not None)
    if server.log:
        yield f"  log {server.log.told}"
        if log is not None and _is_another(log, server.log):
            yield f"    the profile names another, which is not followed: {log}"
    yield _who(server, now)


def _is_another(log: str, followed: LogSource) -> bool:
    """The profile's word does not hold for what is followed; whoever gave ``--log`` knows that."""
    if followed.kind == "given":
        return False
    path = followed.path or ""
    return path != log and not (path.startswith("/proc/") and path.endswith(f"/root{log}"))


def _who(server: Server, now: float) -> str:
    many = counted(server.processes, "process", "processes")
    if server.orphaned:
        return f"  its main process was gone before we looked, {many} left"
    if server.gone_at is not None:
        return f"  pid {server.pid} gone, {many} left"
    return f"  pid {server.pid}, up {ago(now - server.started_at)}, {many}"


def _why(server: Server, target: str, which: str) -> Iterator[str]:
    """The evidence, the diagnosis, and the commands that help."""
    ill = server.state in ("stalled", "crashed", "unknown") or server.verdict.word == "suspect"
    for reason in folded(server.verdict.reasons) if ill else ():
        yield f"    {reason.signal}: {in_words(reason)}"
    for diagnosis in server.diagnoses:
        if diagnosis.root and diagnosis.severity != "info":
            yield f"  {SEVERITY_GLYPHS[diagnosis.severity]} {diagnosis.key}: {diagnosis.summary}"
            yield from (f"    → {remedy.replace(ANY_TARGET, target)}" for remedy in diagnosis.remedy)
            if any("py-spy" in remedy for remedy in diagnosis.remedy):
                yield "      py-spy runs on the host, as root or the server's user: pip install py-spy"
    for diagnosis in server.diagnoses:
        if diagnosis.key == "low_accept_length":
            yield f"  · {diagnosis.summary}: {diagnosis.evidence}"
    if server.state == "stalled":
        yield f"    → specdash kill {target}{which} ends it and checks that every GPU is free"
    elif server.gone_at is not None and server.processes and not _holds_memory(server):
        yield f"    → specdash kill {target}{which} ends what it left behind"


def _holds_memory(server: Server) -> bool:
    """The diagnosis says so, and what to do."""
    return any(diagnosis.key == "orphan_processes" for diagnosis in server.diagnoses)


def _gpus(state: HostState) -> Iterator[str]:
    if state.gpu_error:
        yield f"GPUs: {state.gpu_error}"
    for gpu in state.gpus:
        yield _gpu(gpu)
    if any(outlived(gpu, state) for gpu in state.gpus):
        yield f"    → specdash clean {state.typed} ends what a dead server left, and frees its memory"


def _owner(owner: Owner) -> str:
    """Its name and number; one that has no name is called by its number already."""
    name = owner.label if str(owner.pid) in owner.label.split() else f"{owner.label} {owner.pid}"
    if owner.known:
        return name
    return f"{name} ({'ended; what it forked holds it' if owner.ended else 'not in the process table'})"


def _gpu(gpu: Gpu) -> str:
    card = gpu.card
    memory = "?" if card.used_mib is None else f"{card.used_mib / 1024:.1f}"
    total = "?" if card.total_mib is None else f"{card.total_mib / 1024:.1f}"
    parts = [f"GPU {card.index:>2}  {memory:>6}/{total} GiB"]
    parts.append("  ?%" if card.util is None else f"{card.util:>3}%")
    parts.append("  ? W" if card.power_w is None else f"{card.power_w:>4.0f} W")
    parts.append(" ?°C" if card.temp_c is None else f"{card.temp_c:>3}°C")
    parts.append(" ".join(_owner(owner) for owner in gpu.owners) or "-")
    if gpu.orphan_mib:
        parts.append(f"ORPHAN {gpu.orphan_mib / 1024:.1f} GiB")
    if gpu.note:
        parts.append(gpu.note)
    if card.error:
        parts.append(card.error)
    return "  ".join(parts)
