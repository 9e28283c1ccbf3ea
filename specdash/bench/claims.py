"""Numbers from elsewhere: a rate that somebody says was reached."""

from __future__ import annotations

from specdash.bench.figures import Run
from specdash.bench.plan import Workload
from specdash.bench.record import BASELINE, Measured


def claim(
    host: str, tok_s: float, *, at: float, variant: str = BASELINE, workload: Workload | None = None
) -> Measured:
    """A claim as the history keeps it. ``workload``: under which load it is meant; None: not known."""
    run = Run(
        concurrency=workload.streams if workload else None,
        requests=0,
        errors=0,
        duration_s=0.0,
        output_tok_s=tok_s,
    )
    return Measured(at=at, host=host, variant=variant, claimed=True, workload=workload, run=run)
