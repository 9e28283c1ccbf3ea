"""Why a figure of a serving server is missing, in a few words."""

from __future__ import annotations

from specdash.monitor.frames import Http
from specdash.monitor.memory import ServerMemory
from specdash.monitor.metrics import FINISHED, ITL, TTFT
from specdash.monitor.polling import METRICS
from specdash.monitor.serverparts import Figures

HISTOGRAMS = {"ttft": TTFT, "itl": ITL}


def untold(memory: ServerMemory, figures: Figures) -> dict[str, str]:
    """The reason for each figure that is None, by its field."""
    source = figures.source or "it"
    out = {
        name: f"{source} does not tell"
        for name in ("running", "waiting", "kv_pct", "requests")
        if getattr(figures, name) is None
    }
    if figures.tok_s is None:
        out["tok_s"] = _speed(figures)
    if figures.accept_len is None:
        out["accept_len"] = f"{source} does not tell"
    for name in ("ttft", "itl"):
        if getattr(figures, name) is None:
            out[name] = _latency(memory, HISTOGRAMS[name], seen=figures.ttft is not None)
    if figures.requests is None and figures.source != METRICS:
        out["requests"] = _latency(memory, FINISHED)
    return out


def _speed(figures: Figures) -> str:
    if figures.source == "log":
        return "the newest line tells none"
    if figures.source == METRICS:
        return "not yet, it needs two readings"
    return "its figures stand still" if figures.running else "not told"


def _latency(memory: ServerMemory, names: tuple[str, ...], *, seen: bool = False) -> str:
    """Histograms stand in the metrics page alone."""
    if METRICS in memory.lacks:
        return "needs --enable-metrics" if memory.family.engine == "sglang" else f"no {METRICS} here"
    answer = memory.answers.get(METRICS)
    if answer is None:
        return "not asked yet" if memory.good_at else "it does not answer"
    return _why_not(answer, names, seen=seen)


def _why_not(answer: Http, names: tuple[str, ...], *, seen: bool) -> str:
    """``seen``: some request had its first token."""
    if answer.error is not None:
        return f"{METRICS}: {answer.error}"
    if answer.status != 200:
        return f"{METRICS}: {answer.status}"
    if not any(name in answer.body for name in names):
        return f"{METRICS} has none"
    return "no second token yet" if names is ITL and seen else "no request yet"
