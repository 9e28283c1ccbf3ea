"""Which kind of quiet this is: the key of a stall, or the explanation of a healthy silence."""

from __future__ import annotations

from specdash.monitor.documents import Verdict
from specdash.monitor.evidence import Evidence
from specdash.monitor.limits import Limits

FIRST_STALL = {
    "boot": "worker_hang",
    "dist_init": "nccl_init_hang",
    "weights": "worker_hang",
    "kv_cache": "worker_hang",
    "compile": "worker_hang",
    "capture": "capture_collective_hang",
    "warmup": "worker_hang",
    "serving": "engine_hang",
}


def key_of_stall(evidence: Evidence, lagging: tuple[str, ...]) -> str:
    """The diagnosis of a server that does not go on."""
    if any(card.error and "answer" in card.error for card in evidence.cards):
        return "nvml_call_hangs"
    if evidence.phase != "serving":
        return FIRST_STALL[evidence.phase or "boot"]
    if _other_stage(evidence, lagging):
        return "pp_stage_waiting_for_peer"
    halted = any(rank.state in ("T", "D") for rank in evidence.ranks)
    return "worker_hang" if halted or lagging else "engine_hang"


def _other_stage(evidence: Evidence, lagging: tuple[str, ...]) -> bool:
    """The ranks form pipeline stages, and the ones that lag are whole stages of them."""
    stages = {name: stage for rank in evidence.ranks if (stage := _stage(name := rank.name))}
    guilty = {stages[name] for name in lagging if name in stages}
    return len(set(stages.values())) > 1 and bool(guilty) and guilty != set(stages.values())


def _stage(name: str) -> str | None:
    return next((part for part in name.replace("_", " ").split() if part.startswith("PP")), None)


def key_of_quiet(evidence: Evidence, verdict: Verdict, limits: Limits, jit: bool) -> str:
    """Why a start that is not ready yet may be as quiet as it is.

    A bar older than the phase's suspect limit, with something else alive, has its own explanations.
    """
    phase = evidence.phase
    if phase == "compile" and jit:
        return "healthy_deepgemm_jit"
    if phase is None or verdict.word not in ("working", "quiet"):
        return "healthy_startup"
    steps = [age for age in (evidence.progress_age_s, evidence.milestone_age_s) if age is not None]
    if not steps or min(steps) < limits.phase[phase].suspect_s:
        return "healthy_startup"
    if phase == "weights":
        return "healthy_slow_nfs_load"
    if phase in ("compile", "capture", "warmup") and (phase == "compile" or evidence.compilers):
        return "healthy_slow_compile"
    return "healthy_startup"


def loading_by_signs(evidence: Evidence, limits: Limits) -> bool:
    """Bytes are read and GPU memory grows: weights are being loaded, whatever the log has shown so far.

    Logs of workers may go elsewhere (Ray); the main log then stands still before the load.
    """
    fresh_s = limits.at_once.quiet_s
    reads = evidence.read_age_s is not None and evidence.read_age_s < fresh_s
    grows = evidence.memory_age_s is not None and evidence.memory_age_s < fresh_s
    return reads and grows
