"""Runs on hosts that this machine has begun and not ended: the link was lost, or the program was killed.

Such a run goes on until nobody has listened for some minutes. Whoever measures the same host before that
would measure both, so it is ended first. Runs of other machines and of programs that live are left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from specdash import ownfiles
from specdash.session.lessons import place

FOLDER = "benches"


class Leftovers:
    """What was begun on one host. A small file for each run; where none can be written, nothing is known."""

    def __init__(self, target: str, folder: Path | None = None) -> None:
        self._target = target
        self._folder = folder or place().parent / FOLDER

    def note(self, run: str) -> None:
        """This run is being begun, by us."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file(run).write_text(json.dumps({"target": self._target, "pid": os.getpid()}))

    def forget(self, run: str) -> None:
        """It has ended."""
        with contextlib.suppress(OSError):
            self._file(run).unlink()

    def runs(self) -> Iterator[str]:
        """Those whose program is gone, so that nobody will end them."""
        for file in sorted(self._folder.glob("*.json")):
            try:
                about = json.loads(ownfiles.data_of(file))
                target, pid = about["target"], int(about["pid"])
            except (OSError, ValueError, TypeError, KeyError):
                continue
            if target == self._target and not _lives(pid):
                yield file.stem

    def _file(self, run: str) -> Path:
        return self._folder / f"{run}.json"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
