"""What the HTTP answers say about readiness, against what the log and the counters say."""

from __future__ import annotations

from specdash.monitor.evidence import Answer, Evidence

FRESH_TOKEN_S = 10.0
BUSY_BATCH_S = 60.0

CONSTANT_HEALTH = frozenset({"sglang", "transformers"})
"""Engines of which some version answers ``/health`` 200 before it can generate."""


def refused_key(answer: Answer | None) -> bool:
    """It wants an API key: whoever says that is alive."""
    return answer is not None and answer.status in (401, 403)


def answered(answer: Answer | None) -> bool:
    """Status 200."""
    return answer is not None and answer.status == 200


def unwell(answer: Answer | None) -> bool:
    """``/health`` says 503 (or any error of the server), or accepts and says nothing."""
    if answer is None:
        return False
    return (answer.status or 0) >= 500 or answer.error == "timeout"


def generates(evidence: Evidence) -> bool:
    """Tokens come: a completion was answered, or the counters moved just now."""
    got = answered(evidence.generate) and evidence.generate is not None
    made = got and evidence.generate is not None and (evidence.generate.tokens or 1) > 0
    moved = evidence.tokens_age_s is not None and evidence.tokens_age_s < FRESH_TOKEN_S
    return bool(made) or moved


def starved(evidence: Evidence) -> bool:
    """A completion was asked for and did not come, although the server accepts connections."""
    return evidence.generate is not None and evidence.generate.error == "timeout"


def serves_by_answers(evidence: Evidence, engine: str | None) -> bool:
    """The answers alone show a server that is up, where no log line says so."""
    if generates(evidence) or refused_key(evidence.models) or refused_key(evidence.health):
        return True
    return answered(evidence.health) and engine not in CONSTANT_HEALTH


def readiness_key(evidence: Evidence, engine: str | None, ready_line: bool) -> str:
    """The diagnosis that the answers suggest; "" where they agree with the log."""
    if evidence.phase != "serving":
        if answered(evidence.health) and not ready_line:
            return "health_200_not_ready"
        if answered(evidence.models) and not answered(evidence.health):
            return "models_200_not_ready"
        return ""
    if refused_key(evidence.models) or refused_key(evidence.health) or refused_key(evidence.generate):
        return "auth_required"
    if unwell(evidence.health):
        return _unwell_key(evidence)
    return ""


def _unwell_key(evidence: Evidence) -> str:
    batch = evidence.batch_age_s
    if generates(evidence) and not evidence.busy:
        return "health_503_but_ready"
    if (batch is not None and batch < BUSY_BATCH_S) or generates(evidence):
        return "health_503_busy_prefill"
    return ""
