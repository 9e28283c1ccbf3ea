"""What was planned and what came of it: one file a plan, in the state folder, readable by you alone.

A plan's first line is the plan (without secrets); each later line is one step's new state, written and
flushed before the next request leaves. The file stays locked while its plan is carried out, so whoever
finds one that is not over and not locked knows that its process has died.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from specdash import ownfiles
from specdash.errors import SpecdashError
from specdash.operations.plan import Kind, Plan, Step
from specdash.operations.scrub import scrub

KEPT = 300
"""Plans that are kept; the oldest go."""
SUFFIX = ".jsonl"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as its file tells it."""

    plan: Plan
    ended: bool = False
    why: str = ""
    """Why it ended before its time: ``abandoned for kill-…``."""
    undone_by: str | None = None


class LineFile:
    """A file of JSON lines, locked while something is at work on what it tells of.

    ``first`` is the line of a file that is new; ``kept``: so many files stay in its folder. Raises
    ``SpecdashError`` where another process is at work on it (``busy`` says so) or nothing can be written.
    """

    def __init__(self, path: Path, first: Mapping[str, Any], busy: str, kept: int) -> None:
        self.path = path
        with _kept(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = not path.exists()
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise SpecdashError(busy, "wait until it is done") from None
        try:
            if fresh:
                self.write(first)
            elif not path.read_bytes().endswith(b"\n"):  # a line was torn off: ours begins on its own
                with _kept(path):
                    os.write(self._descriptor, b"\n")
        except SpecdashError:
            self.close()
            if fresh:
                path.unlink(missing_ok=True)
            raise
        if fresh:
            prune(path.parent, kept)

    def write(self, row: Mapping[str, Any], *, sync: bool = True) -> None:
        """One line; on disk when this returns, unless a crash of the machine may take it (``sync``).

        Raises ``SpecdashError``.
        """
        line = msgspec.json.encode(row) + b"\n"
        with _kept(self.path):
            if os.write(self._descriptor, line) < len(line):  # a disk that is nearly full takes a part of it
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file; what was not ended can be taken up again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def _kept(path: Path) -> Iterator[None]:
    """Nothing is done that is not kept. Raises ``SpecdashError``."""
    try:
        yield
    except OSError as error:
        words = ownfiles.unwritten(path, error)
        raise SpecdashError(f"what is done cannot be kept: {words}") from error


class Record(LineFile):
    """One plan's file, while it is carried out."""

    def step(self, plan: Plan, index: int) -> None:
        """A step has changed."""
        row = msgspec.to_builtins(scrub(plan).steps[index])
        row.pop("work")
        self.write({"step": index, "is": row})

    def end(self, why: str = "") -> None:
        """The plan is over."""
        self.write({"end": why})


class Journal:
    """The folder of plans."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or platformdirs.user_state_path("specdash") / "operations"

    def begin(self, plan: Plan) -> Record:
        """Keep a plan that is about to run, or take up one that was kept.

        Raises ``SpecdashError`` where another process carries it out or nothing can be written.
        """
        busy = f"{plan.summary()}: another specdash carries this out"
        return Record(self._path(plan.id), {"plan": msgspec.to_builtins(scrub(plan))}, busy, KEPT)

    def read(self, plan_id: str) -> Entry | None:
        """A plan and how far it came; None where it is not known or not readable."""
        return _read(self._path(plan_id))

    def all(self) -> Iterator[Entry]:
        """Every plan, the newest first."""
        for path in newest_first(self.folder):
            entry = _read(path)
            if entry is not None:
                yield entry

    def unfinished(self, target: str) -> list[Plan]:
        """Plans for this host that were cut off: not over, and nobody is at work on them."""
        found = []
        for entry in self.all():
            if entry.plan.target == target and not entry.ended and entry.plan.begun:
                with contextlib.suppress(SpecdashError):
                    self.begin(entry.plan).close()
                    found.append(entry.plan)
        return found

    def newest(self, target: str, kind: Kind) -> Plan | None:
        """The newest plan of this kind for this host that went well and was not undone."""
        for entry in self.all():
            plan = entry.plan
            if plan.target == target and plan.kind == kind and plan.over and plan.ok and not entry.undone_by:
                return plan
        return None

    def abandon(self, plan: Plan, why: str) -> None:
        """It will not be taken up again."""
        record = self.begin(plan)
        record.end(why)
        record.close()

    def undone(self, plan_id: str, by: str) -> None:
        """A patch was taken back by that plan."""
        path = self._path(plan_id)
        with _kept(path), path.open("ab") as file:
            file.write(msgspec.json.encode({"undone_by": by}) + b"\n")

    def _path(self, plan_id: str) -> Path:
        return self.folder / (plan_id + SUFFIX)


def newest_first(folder: Path) -> list[Path]:
    """The journals of a folder by their last change."""
    return sorted(folder.glob("*" + SUFFIX), key=changed_at, reverse=True)


def prune(folder: Path, kept: int) -> None:
    """Delete the oldest journals beyond so many."""
    for path in newest_first(folder)[kept:]:
        with contextlib.suppress(OSError):
            path.unlink()


def changed_at(path: Path) -> float:
    """Unix time of a file's last change; 0 where it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> Entry | None:
    try:
        first, *lines = ownfiles.data_of(path, None).splitlines()
        entry = Entry(plan=msgspec.convert(msgspec.json.decode(first)["plan"], Plan))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    for line in lines:
        # One that was cut off, or that another version wrote, must not lose the others.
        with contextlib.suppress(ValueError, LookupError, TypeError):
            entry = _with(entry, msgspec.json.decode(line))
    return entry


def _with(entry: Entry, row: dict[str, Any]) -> Entry:
    replace = msgspec.structs.replace
    if "step" in row:
        plan, index = entry.plan, row["step"]
        step = msgspec.convert({**msgspec.to_builtins(plan.steps[index]), **row["is"]}, Step)
        return replace(entry, plan=replace(plan, steps=(*plan.steps[:index], step, *plan.steps[index + 1 :])))
    if "end" in row:
        return replace(entry, ended=True, why=row["end"])
    return replace(entry, undone_by=row["undone_by"])
