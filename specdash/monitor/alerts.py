"""Changes that a person must see, each said once and kept until acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from specdash.monitor.documents import Verdict
from specdash.monitor.liveness import is_stopped
from specdash.monitor.owners import OUTSIDE
from specdash.monitor.spans import ago
from specdash.monitor.state import Alert, Gpu, Server
from specdash.monitor.words import ALARM_STATES, PHASE_TITLES

if TYPE_CHECKING:
    from specdash.monitor.memory import ServerMemory

_KEPT = 50
"""So many alerts stand at most."""
OPEN_KEPT = 20
"""So many servers stay at most whose end nobody has acknowledged, and their alarms with them."""
UNSEEN = "reason not seen"
"""How the reading of a main process ends that is gone while nothing tells why: no line, nothing left."""


def notice(
    before: dict[str, Server], now_servers: tuple[Server, ...], gpus: tuple[Gpu, ...], at: float
) -> Iterator[Alert]:
    """The alerts that these servers and cards give cause for, as far as their state has just changed."""
    for server in now_servers:
        earlier = before.get(server.key)
        if _may_be_ending(server):
            continue
        if earlier is None or _turned(earlier, server) or _may_be_ending(earlier):
            yield from _of_server(server, earlier, at)
    for gpu in gpus:
        yield from _of_card(gpu, at)
    outside = [str(gpu.card.index) for gpu in gpus if gpu.note == OUTSIDE]
    if outside:
        text = f"GPU {', '.join(outside)}: memory {OUTSIDE}"
        yield Alert(key="gpus/outside", at=at, severity="warning", text=text)


def _turned(earlier: Server, server: Server) -> bool:
    """Its state is another one."""
    return (earlier.state, earlier.stopping) != (server.state, server.stopping)


LATE_S = 10.0
"""A log may tell of a stop so long after the processes that it ended were missed."""


def of_ends(
    known: tuple[Alert, ...], before: Mapping[str, Server], now: Mapping[str, Server], at: float
) -> tuple[Alert, ...]:
    """Without the crash of a server that turns out to have been asked to end: its log came after its dead."""
    asked = {
        key
        for key, server in now.items()
        if server.state == "stopped" and key in before and before[key].state == "crashed"
    }
    if not asked:
        return known
    return tuple(
        alert
        for alert in known
        if not (alert.alarm and about(alert.key) in asked and at - alert.at <= LATE_S)
    )


def keep(known: tuple[Alert, ...], fresh: Iterator[Alert], dismissed: frozenset[str]) -> tuple[Alert, ...]:
    """Add what is new; the same alert is not said twice while it stands or after it was acknowledged."""
    keys = {alert.key for alert in known} | dismissed
    added = []
    for alert in fresh:
        if alert.key not in keys:
            keys.add(alert.key)
            added.append(alert)
    return _with_room((*known, *added)) if added else known


def _with_room(alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
    """The newest, and the first crashes: the view of a server hangs on the alarm of its end."""
    crashes = [alert.key for alert in alerts if alert.alarm and "/crashed/" in alert.key][:OPEN_KEPT]
    leave_first = sorted(alerts, key=lambda alert: alert.key in crashes)
    gone = {alert.key for alert in leave_first[:-_KEPT]}
    return tuple(alert for alert in alerts if alert.key not in gone)


_RANKS = {"error": 2, "warning": 1, "info": 0}


def foremost(alerts: tuple[Alert, ...], shown: str | None = None) -> Alert | None:
    """The one that is shown, acknowledged and snoozed first: the gravest that is not over, then the newest.

    What a later word about the same subject has overtaken (``moved again``) is over. ``shown``: the key of
    the server on the screen; what is wrong with it comes before what is wrong with others.
    """
    spoken = _last_words(alerts)

    def weight(alert: Alert) -> tuple[bool, int, float]:
        rank = -1 if spoken[_subject(alert)] > alert.at else _RANKS[alert.severity]
        return shown is not None and about(alert.key) == shown and rank > 0, rank, alert.at

    return max(alerts, key=weight, default=None)


def wrong(alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
    """Those of something that is wrong now: neither good news, nor overtaken by a later word about it."""
    spoken = _last_words(alerts)
    return tuple(one for one in alerts if one.severity != "info" and spoken[_subject(one)] <= one.at)


def _last_words(alerts: tuple[Alert, ...]) -> dict[str, float]:
    """Subject → when it was last spoken of."""
    return {_subject(alert): alert.at for alert in alerts}  # oldest first


def about(key: str) -> str | None:
    """Key of the server that the alert of this key is about; None: it is about something else."""
    subject = key.partition("/")[0]
    return subject.removeprefix("server:") if subject.startswith("server:") else None


def _subject(alert: Alert) -> str:
    return alert.key.partition("/")[0]


def seen(known: tuple[Alert, ...], key: str) -> tuple[Alert, ...]:
    """Those that somebody has seen with this one: it, and what it has overtaken."""
    last = next((alert for alert in known if alert.key == key), None)
    return tuple(one for one in known if last is not None and (one is last or _overtakes(last, one)))


def _overtakes(late: Alert, early: Alert) -> bool:
    """Old news of a server, and what was wrong with it before a later alarm, comes up no more."""
    server = about(late.key)
    alike = server is not None and server == about(early.key) and early.at <= late.at
    return alike and (late.alarm or early.severity == "info") and early.key != late.key


def standing(
    known: tuple[Alert, ...], snoozed: Mapping[str, float], servers: Mapping[str, Server], now: float
) -> tuple[Alert, ...]:
    """Those to be shown: a snoozed one comes back when its time is up, if what it says is still so."""
    if not snoozed:
        return known
    waiting = [
        alert
        for alert in known
        if (until := snoozed.get(alert.key)) is not None and not (now >= until and _holds(alert, servers))
    ]
    over = {alert.key for alert in known if any(_overtakes(one, alert) for one in waiting)}
    return tuple(alert for alert in known if alert not in waiting and alert.key not in over)


def _holds(alert: Alert, servers: Mapping[str, Server]) -> bool:
    subject, _, rest = alert.key.partition("/")
    server = servers.get(subject.removeprefix("server:"))
    if not alert.alarm:
        return True
    return server is not None and rest.startswith(f"{server.state}/")


FAREWELL_S = 2.0
"""An orderly end takes a server's processes one by one, and its log may tell of it so long afterwards."""


def _may_be_ending(server: Server) -> bool:
    """One of its processes went a moment ago, and nothing tells yet whether all of them will: no bell."""
    since = server.verdict.since_s
    alone = any(one.key == "scheduler_dead_parent_alive" for one in server.diagnoses)
    return server.state == "crashed" and alone and since is not None and since < FAREWELL_S


def _of_server(server: Server, earlier: Server | None, at: float) -> Iterator[Alert]:
    if server.crashed_at is not None:
        at = max(server.crashed_at, at - LATE_S)  # it was looked at twice before the bell was rung
    # The moment is part of the key: a server that stalls a second time is news again.
    key = f"server:{server.key}/{server.state}/{int(at)}"
    if server.state in ALARM_STATES:
        yield Alert(
            key=key,
            at=at,
            severity="error"
            if server.state in ("stalled", "crashed") and not unexplained(server)
            else "warning",
            text=what_happened(server),
            next_key=helps(server),
            alarm=True,
        )
    elif earlier is None or server.stopping:
        return
    elif server.state == "stopped":
        yield Alert(key=key, at=at, severity="info", text=f"{server.name} has stopped, as it was asked to")
    elif earlier.state == "stalled":
        yield Alert(key=key, at=at, severity="info", text=f"{server.name} moved again{_after(earlier)}")
    elif earlier.state == "degraded" and server.state == "ready":
        yield Alert(key=key, at=at, severity="info", text=f"{server.name} serves well again")
    elif server.state == "ready" and earlier.state != "unknown":
        yield Alert(key=key, at=at, severity="info", text=f"{server.name} is ready{_took(server)}")


def unexplained(server: Server) -> bool:
    """It is gone and nothing was seen that says why: somebody may have ended it, or it died unheard."""
    return server.state == "crashed" and unseen(server.verdict)


def unseen(verdict: Verdict) -> bool:
    """Its evidence ends with the main process gone."""
    return any(one.value.endswith(UNSEEN) for one in verdict.reasons)


def _took(server: Server) -> str:
    """How long its start took, where somebody saw that: we, or its log."""
    if server.ready_after_s is None:
        return ""
    if server.ready_at is not None:
        return f", {ago(server.ready_after_s)} after its start"
    return f"; by its log the start took {ago(server.ready_after_s)}"


def _after(earlier: Server) -> str:
    """How long it had stood still."""
    stopped = [one.age_s for one in earlier.verdict.reasons if is_stopped(one) and one.age_s is not None]
    flat = [one.age_s for one in earlier.verdict.reasons if one.says == "flat" and one.age_s is not None]
    still = max((*stopped, earlier.verdict.since_s or 0.0, min(flat, default=0.0)))
    return f" after {ago(still)}" if still >= 1 else ""


KNOWN_FIXES = frozenset({"draft_context_mismatch"})
"""Diagnoses whose fix is known: it can be reviewed as a diff."""


def helps(server: Server) -> str | None:
    """The action that goes on from here; whoever may not act is not told."""
    if server.state == "stalled":
        return "server.kill"
    if unexplained(server):
        return "server.restart"  # there is no error to go to
    if any(diagnosis.root and diagnosis.key in KNOWN_FIXES for diagnosis in server.diagnoses):
        return "config.patch"
    if any(diagnosis.root and diagnosis.key == "orphan_processes" for diagnosis in server.diagnoses):
        return "gpu.clean"
    if server.state == "crashed" and server.gone_at is not None and server.processes:
        return "server.kill"  # it ends what is left behind
    if server.state == "crashed" and server.gone_at is not None and not server.diagnoses:
        return "server.restart"  # only what outlived it tells of its crash
    return "log.error" if server.state == "crashed" else None


def what_happened(server: Server) -> str:
    """As of this moment, and true for as long as it stands: how long ago that was stands beside it."""
    where = f" in {PHASE_TITLES[server.phase]}" if server.phase else ""
    if unexplained(server):
        return f"{server.name}: main process gone{where}, {UNSEEN}"
    if server.state == "stalled":
        since_s = server.verdict.since_s or 0.0
        still = f"no progress for {ago(since_s)}" if since_s >= 1 else ""
        stopped = [reason.value for reason in server.verdict.reasons if is_stopped(reason)][:2]
        if stopped and server.verdict.limit_s is None:
            still = ""  # that it is stopped called it
        told = ", ".join(filter(None, (still, *stopped)))
        one = server.lagging[0] if len(server.lagging) == 1 and not stopped else ""
        who = f" ({one} holds the others up)" if one else ""
        return f"{server.name} stalled{where}{f': {told}' if told else ''}{who}"
    root = next((diagnosis for diagnosis in server.diagnoses if diagnosis.root), None)
    if root:
        who = f" ({root.evidence})" if root.key == "orphan_processes" and root.evidence else ""
        return f"{server.name} {server.state}{where}: {root.summary}{who}"
    seen = [f"{reason.signal} {reason.value}" for reason in server.verdict.reasons if reason.says == "bad"]
    return f"{server.name} {server.state}{where}" + (f": {', '.join(seen[:2])}" if seen else "")


PORT_SETTLES_S = 20.0
"""An old server may take this long to let go of a port that the next one wants."""


def of_port(memory: ServerMemory, server: Server, at: float) -> Alert | None:
    """Somebody else holds the port of a server that is still to bind it: said long before that fails."""
    owner = memory.port_owner
    if owner is None or server.gone_at is not None or server.state in ALARM_STATES | {"stopped"}:
        return None
    if at - owner.since < PORT_SETTLES_S:
        return None
    older_s = server.started_at - owner.started
    older = f", {ago(older_s)} older" if older_s >= 1 else ""
    text = f"{server.name}: port {owner.port} belongs to {owner.name} (pid {owner.pid}{older})"
    key = f"server:{server.key}/port/{owner.pid}"
    return Alert(key=key, at=at, severity="warning", text=f"{text}: this server cannot have it")


LOST = {
    "GPU is lost": "is lost: the host needs a reboot",
    "GPU requires a reset": "needs a reset: nothing can use it before",
}
"""NVML's word for a card on which nothing can compute any more → what that means. No key here helps."""


def _of_card(gpu: Gpu, at: float) -> Iterator[Alert]:
    card = gpu.card
    if gpu.orphan_mib:
        gib = gpu.orphan_mib / 1024
        text = f"GPU {card.index}: {gib:.1f} GiB held by no known process"
        key = f"gpu:{card.uuid or card.index}/orphan"
        yield Alert(key=key, at=at, severity="warning", text=text, next_key="gpu.clean")
    if card.error in LOST:
        text = f"GPU {card.index} {LOST[card.error]}"
        yield Alert(key=f"gpu:{card.uuid or card.index}/lost", at=at, severity="error", text=text)
    elif card.error:
        yield Alert(
            key=f"gpu:{card.uuid or card.index}/error",
            at=at,
            severity="warning",
            text=f"GPU {card.index}: {card.error}",
        )
