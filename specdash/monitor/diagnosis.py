"""What is the matter with a server: its log's cause, the kernel, the answers and its liveness, weighed.

``diagnose`` is the one place where these meet; ``specdash log`` and the live monitor both come here.
The first diagnosis is the root; whatever else was seen follows and never outranks it.
"""

from __future__ import annotations

import msgspec

from specdash.monitor import autopsy, checkup
from specdash.monitor.case import Case, Judged, LogWords
from specdash.monitor.documents import Verdict
from specdash.monitor.evidence import Evidence
from specdash.monitor.kernel import read_kernel
from specdash.monitor.limits import Limits
from specdash.monitor.liveness import suspects
from specdash.monitor.rootcause import find_cause
from specdash.monitor.signatures import Book
from specdash.monitor.trouble import Troubles

ENDED_WHOLE = "sigkill_unknown_origin"

replace = msgspec.structs.replace


def diagnose(words: LogWords, evidence: Evidence, verdict: Verdict, limits: Limits, book: Book) -> Judged:
    """Everything known, weighed once. ``verdict`` is what ``assess`` made of ``evidence``."""
    kernel = read_kernel(evidence.kernel, [rank.pid for rank in evidence.ranks if rank.pid is not None])
    lives = evidence.main is not None and evidence.main.state not in (None, "gone", "Z")
    if lives:
        words = replace(words, troubles=_of_the_living(words.troubles))
    cause = find_cause(words.troubles, None if words.ready or lives else words.last_life)
    halts = verdict.word in ("suspect", "stalled", "crashed")
    lagging = suspects(evidence, limits.thresholds) if halts else ()
    case = Case(
        words=words,
        evidence=evidence,
        verdict=verdict,
        limits=limits,
        book=book,
        kernel=kernel,
        lagging=lagging,
    )
    if cause is not None:
        return autopsy.of_cause(case, cause)
    return (
        autopsy.ended(case)
        or autopsy.of_kernel(case)
        or checkup.halted(case)
        or checkup.hampered(case)
        or checkup.healthy(case)
    )


def _of_the_living(troubles: Troubles) -> Troubles:
    """A shell that tells of the end of its child means another one: an earlier start, a neighbour's."""
    return replace(troubles, found=tuple(one for one in troubles.found if one.key != ENDED_WHOLE))
