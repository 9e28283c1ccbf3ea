"""Data parallelism: of several replicas of a model one may stand still while the others serve.

Replicas of a dense model work each for itself. Those of vLLM with experts in common, and of SGLang with
``--enable-dp-attention``, take every step together: when one is stopped, no token comes from any. Names do
not tell the two apart; tokens do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from specdash.monitor.evidence import Evidence, RankSeen

PROOF_S = 12.0
"""Tokens so long after a replica was stopped are another's: statistics lines sum up ten seconds."""

_REPLICA = re.compile(r"(?:^|(?<!MOE)[ _])DP(\d+)(?=$|[ _])")


def replica_of(name: str) -> str | None:
    """``DP1`` of ``DP1 TP0`` and of ``EngineCore_DP1``; None for what belongs to no replica."""
    found = _REPLICA.search(name)
    return f"DP{int(found[1])}" if found else None


def stopped(evidence: Evidence) -> tuple[str, ...]:
    """Replicas with a stopped process, where each stopped one belongs to a replica and another has none."""
    workers = (*evidence.ranks, *evidence.others)
    if evidence.main is not None and evidence.main.state == "T":
        return ()
    halted = [replica_of(one.name) for one in workers if one.state == "T"]
    every = {replica for one in workers if (replica := replica_of(one.name)) is not None}
    still = {replica for replica in halted if replica is not None}
    if not still or None in halted or still == every:
        return ()
    return tuple(sorted(still, key=lambda replica: int(replica[2:])))


def apart(names: Mapping[int, str], halted: Collection[int]) -> frozenset[int]:
    """Which stopped processes say nothing against tokens that come: another replica may have made them."""
    every = {replica for name in names.values() if (replica := replica_of(name)) is not None}
    still = {pid: replica_of(name) for pid, name in names.items() if pid in halted}
    return frozenset(still) if None not in still.values() and set(still.values()) != every else frozenset()


def stopped_processes(evidence: Evidence) -> tuple[RankSeen, ...]:
    """The processes that are stopped."""
    return tuple(one for one in (*evidence.ranks, *evidence.others) if one.state == "T")


def flat_s(evidence: Evidence) -> float | None:
    """Since when no token has come, by counters and lines; None: neither tells."""
    ages = [evidence.batch_age_s, evidence.tokens_age_s if evidence.tokens_seen else None]
    return min((age for age in ages if age is not None), default=None)


def others_serve(evidence: Evidence) -> bool:
    """Tokens came long after the replica was stopped: the others do not wait for it."""
    if not stopped(evidence):
        return False
    held = max((one.state_age_s or 0.0 for one in stopped_processes(evidence)), default=0.0)
    flat = flat_s(evidence)
    return flat is not None and held - flat >= PROOF_S
