"""Keeps a simulated host from leaving anything behind, however it ends.

Two processes watch each other. The keeper is what the operator started; its child is the host's first
process. If the host is killed, its processes fall to the keeper, which ends them; if the keeper is
killed, the host sees its pipe close and ends itself. Both take the folder away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from types import FrameType

from specdash.sim import folder as files
from specdash.sim.options import Options
from specdash.sim.processes import ENDINGS, adopt_orphans, sweep


def keep(options: Options) -> int:
    """Run a simulated host to its end; returns its exit status. Linux only: the caller checks."""
    child = 0
    asked: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    for number in ENDINGS:
        signal.signal(number, pass_on)
    folder = files.create()
    adopt_orphans()
    reads, writes = os.pipe()
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # none is lost between two processes
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for number in ENDINGS:
                signal.signal(number, signal.SIG_DFL)  # until the host listens itself; we clear up after it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
            os.close(writes)
            os.setsid()  # a signal to the keeper's whole group is the keeper's to pass on
            # Only here: the keeper stays small.
            from specdash.sim.host import run

            status = run(folder, options, reads)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    os.close(reads)
    if asked:
        pass_on(asked[-1], None)  # it came before there was a child
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        left = sweep()
        files.remove(folder)
    if left:
        print(f"specdash sim: these processes would not end: {left}", file=sys.stderr)  # noqa: T201
    if left:
        return 1
    return status if status >= 0 else 0 if -status in asked else 1
