"""``specdash status --json``: the picture of a host as a document."""

from __future__ import annotations

from typing import Any

import msgspec

from specdash.monitor.documents import SCHEMA, Document, LogDocument
from specdash.monitor.owners import sees_all
from specdash.monitor.samples import CardHealth, Disk
from specdash.monitor.serverparts import EnvState, Lamp, Latency
from specdash.monitor.state import Alert, Gpu, HostState, Server
from specdash.monitor.words import ALARM_STATES, Severity


class Worker(Document, frozen=True, kw_only=True):
    """One rank."""

    rank: str
    pid: int
    state: str
    gpu: tuple[int, ...]


class EnvValue(Document, frozen=True, kw_only=True):
    """One variable in one rank."""

    state: EnvState
    value: str | None
    source: str | None
    """Who says so, where it is not the rank's own environment."""


class EngineNow(Document, frozen=True, kw_only=True):
    """What the server does right now; null is not known."""

    tok_s: float | None
    running: int | None
    waiting: int | None
    kv_pct: float | None
    accept_len: float | None
    ttft: Latency | None = None
    """Time to the first token, the newest minute that had requests."""
    itl: Latency | None = None
    """Time from token to token."""
    missing: dict[str, str]
    """Why a figure is null, by its name here."""


class ServerDocument(LogDocument, frozen=True, kw_only=True):
    """A server: what its log says, and what was seen of it."""

    pid: int
    name: str
    port: int | None
    model: str | None
    speculation: str | None
    parallel: str | None
    log: str | None
    log_says: str | None
    started_at: float
    truth: str
    readiness: dict[str, dict[str, Any]]
    workers: tuple[Worker, ...]
    env: dict[str, dict[str, EnvValue]]
    """Variable → rank → what was seen of it."""
    eta_s: float | None
    """Until ready, by earlier starts of this kind."""
    engine_now: EngineNow


class HostDocument(Document, frozen=True, kw_only=True):
    """The machine."""

    name: str | None
    boot_id: str | None
    driver: str | None
    python: str | None
    user: str | None
    container: str | None
    simulated: bool
    ram_used_mib: int | None
    ram_total_mib: int | None
    shm_used_mib: int | None
    shm_total_mib: int | None
    disk: tuple[Disk, ...]


class GpuProcess(Document, frozen=True, kw_only=True):
    """An owner of memory."""

    pid: int
    mib: int | None
    rank: str | None
    label: str
    owner: bool = True


class GpuDocument(Document, frozen=True, kw_only=True):
    """One card; null is not known, and ``error`` says why."""

    index: int
    uuid: str | None
    name: str | None
    total_mib: int | None
    used_mib: int | None
    orphan_mib: int | None
    note: str | None
    util: int | None
    power_w: float | None
    temp_c: int | None
    throttle: tuple[str, ...]
    processes: tuple[GpuProcess, ...]
    error: str | None
    health: CardHealth | None = None
    """ECC, remapped rows, links: null until it was read."""
    health_age_s: float | None = None


class AlertDocument(Document, frozen=True, kw_only=True):
    """One thing that a person must see."""

    at: float
    severity: Severity
    text: str


class StatusDocument(Document, frozen=True, kw_only=True):
    """One look at a host."""

    schema: int = SCHEMA
    target: str
    at: float
    host: HostDocument
    gpus: tuple[GpuDocument, ...]
    gpu_error: str | None
    servers: tuple[ServerDocument, ...]
    alerts: tuple[AlertDocument, ...]


def status_document(state: HostState) -> StatusDocument:
    """The picture, in the words of the contract."""
    return StatusDocument(
        target=state.target,
        at=state.now,
        host=_host(state),
        gpus=tuple(_gpu(gpu, state) for gpu in state.gpus),
        gpu_error=state.gpu_error,
        servers=tuple(_server(server, state.now) for server in state.servers),
        alerts=tuple(map(_alert, state.alerts)),
    )


def troubled(state: HostState) -> bool:
    """Something on this host needs a person: the exit code of ``status``.

    So does a log that was named and cannot be read: nobody knows what it would say.
    """
    ill = any(server.state in ALARM_STATES or unread(server) for server in state.servers)
    return ill or any(gpu.card.error or gpu.orphan_mib or outlived(gpu, state) for gpu in state.gpus)


def outlived(gpu: Gpu, state: HostState) -> bool:
    """The driver keeps memory for a process that is no more: what it has forked holds it.

    Where processes may live that are not seen here (another namespace), one look cannot tell.
    """
    whole = state.processes_at is not None and state.host is not None and sees_all(state.host)
    return any(owner.ended or (whole and not owner.known) for owner in gpu.owners)


def unread(server: Server) -> bool:
    """The log that ``--log`` names for it cannot be read."""
    return server.log is not None and server.log.kind == "given" and server.log.error is not None


def _host(state: HostState) -> HostDocument:
    host, machine = state.host, state.machine
    return HostDocument(
        name=host.name if host else None,
        boot_id=host.boot if host else None,
        driver=state.driver,
        python=host.python if host else None,
        user=host.user if host else None,
        container=host.container if host else None,
        simulated=bool(host and host.simulated),
        ram_used_mib=machine.ram_used_mib if machine else None,
        ram_total_mib=machine.ram_total_mib if machine else None,
        shm_used_mib=machine.shm_used_mib if machine else None,
        shm_total_mib=machine.shm_total_mib if machine else None,
        disk=machine.disks if machine else (),
    )


def _gpu(gpu: Gpu, state: HostState) -> GpuDocument:
    card = gpu.card
    read_at, health = state.health.get(card.index, (None, None))
    return GpuDocument(
        index=card.index,
        uuid=card.uuid,
        name=card.name,
        total_mib=card.total_mib,
        used_mib=card.used_mib,
        orphan_mib=gpu.orphan_mib,
        note=gpu.note,
        util=card.util,
        power_w=card.power_w,
        temp_c=card.temp_c,
        throttle=card.throttle,
        processes=tuple(
            GpuProcess(pid=o.pid, mib=o.mib, rank=o.label if o.server else None, label=o.label)
            for o in gpu.owners
        ),
        error=card.error,
        health=health,
        health_age_s=None if read_at is None else round(max(0.0, state.now - read_at), 1),
    )


def _server(server: Server, now: float) -> ServerDocument:
    figures = server.figures
    return ServerDocument(
        engine=server.engine,
        version=server.version,
        state=server.state,
        phase=server.phase,
        role=server.role,
        verdict=server.verdict,
        progress=server.progress,
        lagging=server.lagging,
        milestones=server.milestones,
        diagnoses=server.diagnoses,
        alarm=server.state in ALARM_STATES,
        pid=server.pid,
        name=server.name,
        port=server.port,
        model=server.model,
        speculation=server.speculation,
        parallel=server.parallel,
        log=server.log.path if server.log else None,
        log_says=(server.log.error or server.log.says) if server.log else None,
        started_at=server.started_at,
        truth=server.truth,
        readiness={lamp.name: _lamp(lamp, now) for lamp in server.lamps},
        workers=tuple(
            Worker(rank=rank.name, pid=rank.pid, state=rank.state, gpu=rank.gpus) for rank in server.ranks
        ),
        env={
            row.name: {
                rank: EnvValue(state=cell.state, value=cell.value, source=cell.source)
                for rank, cell in row.cells.items()
            }
            for row in server.environment
        },
        eta_s=server.eta_s,
        engine_now=EngineNow(
            tok_s=figures.tok_s,
            running=figures.running,
            waiting=figures.waiting,
            kv_pct=figures.kv_pct,
            accept_len=figures.accept_len,
            ttft=figures.ttft,
            itl=figures.itl,
            missing={
                name: why for name, why in figures.missing.items() if name in EngineNow.__struct_fields__
            },
        ),
    )


def _lamp(lamp: Lamp, now: float) -> dict[str, Any]:
    if lamp.name == "token":
        return {"asked": lamp.asked, "says": lamp.says, "value": lamp.value, "age_s": _age(lamp, now)}
    return {
        "says": lamp.says,
        "value": lamp.value,
        "age_s": _age(lamp, now),
    }


def _age(lamp: Lamp, now: float) -> float | None:
    return None if lamp.at is None else round(max(0.0, now - lamp.at), 1)


def _alert(alert: Alert) -> AlertDocument:
    return AlertDocument(at=alert.at, severity=alert.severity, text=alert.text)


def encode(document: Document) -> str:
    """As JSON, indented for a person."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
