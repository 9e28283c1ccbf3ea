"""A diagnosis in words."""

from __future__ import annotations

from specdash.intake.rules import default_rules
from specdash.monitor.speech import EVIDENCE_LONG, say


def test_evidence_that_is_too_long_ends_with_a_whole_word() -> None:
    book = default_rules().book
    told = "; ".join(f"EngineCore {pid}" for pid in range(123_450, 123_480))
    assert len(told) > EVIDENCE_LONG
    kept = say(book, "orphan_processes", evidence=told).evidence
    assert len(kept) <= EVIDENCE_LONG + 2
    assert kept.endswith(" …")
    assert {len(word.rstrip(";")) for word in kept.split()[1::2]} <= {6, 1}, "no number lost a digit"
    assert say(book, "orphan_processes", evidence=told[:90]).evidence == told[:90]
