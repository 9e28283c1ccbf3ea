"""What to do about a halt, with the pids of this very server in it."""

from __future__ import annotations

import re

import msgspec

from specdash.monitor.documents import Diagnosis
from specdash.monitor.evidence import Evidence
from specdash.monitor.liveness import everyone

_ANY_PID = re.compile(r"--pid of [^,;]+")
"""A remedy that says of whom; where the pid is known it stands there."""


def with_pids(said: Diagnosis, evidence: Evidence, lagging: tuple[str, ...]) -> Diagnosis:
    """The same with the pids in it: what to look at, and what lets a stopped process go on."""
    known = [rank for rank in everyone(evidence) if rank.pid is not None]
    stopped = [rank for rank in known if rank.state == "T"]
    guilty = stopped or [rank for rank in known if rank.name in lagging]
    named = tuple(_ANY_PID.sub(f"--pid {guilty[0].pid}", one) for one in said.remedy if guilty)
    if not stopped:
        return msgspec.structs.replace(said, remedy=named or said.remedy)
    names = " and ".join(f"{rank.name} was stopped" for rank in stopped[:2])
    pids = " ".join(str(rank.pid) for rank in stopped)
    goes_on = f"kill -CONT {pids} lets it go on: {names} by a signal (SIGSTOP), not by a fault"
    rest = tuple(one for one in named if "py-spy" not in one)
    again = "if it does not go on: kill and start again"
    return msgspec.structs.replace(said, remedy=(goes_on, *rest, again))
