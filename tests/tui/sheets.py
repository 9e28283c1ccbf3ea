"""Hosts of which there is much to look up: a start rank by rank, a night of events, an environment."""

from __future__ import annotations

from functools import partial

import msgspec

from specdash.monitor.serverparts import (
    Check,
    EnvCell,
    EnvRow,
    Step,
)
from specdash.monitor.state import Event, EventKind, HostState
from specdash.monitor.words import Severity
from tests.tui.pieces import NOW
from tests.tui.states import serving, stalled


def checked() -> HostState:
    """The stalled start, rank by rank: seven ranks capture, TP3 is still at its weights' draft."""
    day = "2026-11-29 12:"
    checks = []
    for at in range(8):
        rank = f"TP{at}"
        whole = partial(Check, rank=rank, begin_line=20 + at, end_line=40 + at)
        checks.append(
            whole(role="target", phase="weights", begin_time=f"{day}33:58", end_time=f"{day}36:{39 + at}")
        )
        if at != 3:
            checks.append(whole(role="draft", phase="weights", took_s=3.0, implied=at == 5))
            checks.append(
                Check(
                    role="target", phase="capture", part="decode", rank=rank, begin_line=60 + at,
                    begin_time=f"{day}36:44", done=4 if at == 0 else None, total=8 if at == 0 else None,
                )
            )  # fmt: skip
    state = stalled()
    parts = (
        Step(title="weights target", mark="done", took_s=161, phase="weights", role="target"),
        Step(title="weights draft", mark="done", took_s=3, phase="weights", role="draft"),
        Step(
            title="graphs target decode", mark="failed", detail="4/8", phase="capture", role="target",
            part="decode",
        ),
        Step(title="ready", mark="pending"),
    )  # fmt: skip
    usual = tuple(
        msgspec.structs.replace(item, usual_s=158.0, worst_s=190.0) if item.phase == "weights" else item
        for item in state.servers[0].rail
    )
    now = msgspec.structs.replace(
        state.servers[0], checks=tuple(checks), steps=parts, rail=usual, starts_known=6
    )
    return msgspec.structs.replace(state, servers=(now,))


def eventful() -> HostState:
    """A night: found hung, killed by somebody, started again, the link lost meanwhile."""
    name = "sglang:30000"
    told: tuple[tuple[float, EventKind, Severity, str], ...] = (
        (3600, "link", "info", "connected"),
        (3600, "process", "info", "sglang:30000: process 4011 was found, up 8:02:51"),
        (3599, "alert", "error", f"{name} stalled in graphs: no progress for 8:02:51 (TP3 holds them up)"),
        (3000, "alert", "error", f"{name} crashed in graphs: its main process is gone, 608 GiB are left"),
        (2990, "process", "info", "sglang:30000: new process 4242"),
        (2000, "link", "warning", "connection lost: no answer for 10 s"),
        (1959, "link", "info", "connected again; nothing was seen for 50 s"),
        (600, "alert", "error", "sglang:30000 stalled in serving: no progress for 1:00"),
        (564, "recovery", "info", "sglang:30000 moved again after 1:36"),
    )  # fmt: skip
    return msgspec.structs.replace(
        serving(),
        events=tuple(
            Event(at=NOW - ago, kind=kind, severity=how, text=text) for ago, kind, how, text in told
        ),
    )


def mixed_environment() -> HostState:
    """One variable did not reach a rank, one was rewritten by the engine, titles cover the rest."""
    seen, missing = partial(EnvCell, state="seen"), EnvCell(state="missing")
    ranks = [f"TP{i}" for i in range(8)]
    algo = {rank: missing if rank == "TP3" else seen(value="Ring") for rank in ranks}
    proto = {rank: EnvCell(state="rewritten", value="Simple", source="NCCL") for rank in ranks}
    hidden = {r: EnvCell(state="unknown", value="0,1,2,3,4,5,6,7", source="resource tracker") for r in ranks}
    rows = (
        EnvRow(name="CUDA_VISIBLE_DEVICES", main=seen(value="0,1,2,3,4,5,6,7"), cells=hidden),
        EnvRow(name="NCCL_ALGO", main=seen(value="Ring"), cells=algo),
        EnvRow(name="NCCL_DEBUG", main=seen(value="INFO"), cells=dict.fromkeys(ranks, seen(value="INFO"))),
        EnvRow(name="NCCL_PROTO", main=seen(value="LL"), cells=proto),
        EnvRow(
            name="SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
            main=missing,
            cells=dict.fromkeys(ranks, EnvCell(state="unknown")),
        ),
    )
    state = serving()
    now = msgspec.structs.replace(state.servers[0], environment=rows)
    return msgspec.structs.replace(state, servers=(now,))
