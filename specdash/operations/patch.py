"""Plans that change values in a file on the host, and the plan that takes the newest change back."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.errors import SpecdashError
from specdash.operations import edits
from specdash.operations.acts import Acts, Hands
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan, Step
from specdash.operations.replies import File
from specdash.operations.rewriting import digest
from specdash.operations.rules import Rules, guard, make
from specdash.operations.work import Edit, Look, TakeBack, Write
from specdash.sanitise import clean_line


class NothingToDo(SpecdashError):
    """The file has these values already."""


async def prepare(acts: Acts, path: str, changes: Sequence[Edit], *, rules: Rules | None = None) -> Plan:
    """The plan for changing these values of a file: its preview is the diff.

    Raises ``SpecdashError`` where the file cannot be read or edited so.
    """
    file = await read(Hands(acts), path)
    before = file.bytes
    after = edits.apply(path, before, [(edit.key, edit.value) for edit in changes])
    if after == before:
        raise NothingToDo(f"{path}: nothing would change")
    write = Write(
        path=path,
        edits=tuple(changes),
        expect=digest(before),
        becomes=digest(after),
        link="replace" if file.hf_cache else "through",
    )
    shown = tuple(map(clean_line, edits.diff(path, before, after)))
    keys = ", ".join(edit.key for edit in changes)
    steps = (
        Step(title=f"write {path}", risk="hard", work=write, preview=shown),
        Step(title="read it again", risk="read", work=Look(path=path, becomes=digest(after))),
    )
    plan = make(acts, "patch", f"{keys} in {path}", steps, warnings=_warnings(file))
    return guard(plan, rules or Rules())


async def read(hands: Hands, path: str) -> File:
    """A whole file. Raises ``SpecdashError`` where there is none or not all of it could be had."""
    file = await hands.read_file(path)
    if not file.exists:
        raise SpecdashError(f"{path}: there is no such file on the host")
    if file.truncated or file.sha256 is None:
        raise SpecdashError(f"{path}: too large to be edited here")
    if file.stat is not None and file.stat.kind != "file":
        raise SpecdashError(f"{path}: a {file.stat.kind}, not a file")
    return file


def _warnings(file: File) -> list[str]:
    told = []
    if file.hf_cache:
        told.append(
            "this is a link of the Hugging Face cache into a file that other revisions share: the link is "
            "replaced by a private copy; a later download may put the link back"
        )
    elif file.link:
        told.append(f"this is a link: the file written is {file.real or file.link}")
    if file.stat is not None and file.stat.nlink > 1 and not file.hf_cache:
        told.append(f"the file has {file.stat.nlink} names (hard links): only this one changes")
    if not file.writable:
        told.append("it does not look writable for us: connect as its owner or root, or with --sudo")
    return told


def undo(acts: Acts, journal: Journal, *, rules: Rules | None = None) -> tuple[Plan, Plan]:
    """The plan that takes back the newest patch of this host, and that patch.

    Raises ``SpecdashError`` where there is none.
    """
    patched = journal.newest(acts.target, "patch")
    step = patched.steps[0] if patched else None
    if patched is None or step is None or not step.result.get("backup"):
        raise SpecdashError("there is no patch of this host to take back")
    path, backup = str(step.result["path"]), str(step.result["backup"])
    work = TakeBack(path=path, backup=backup, expect=str(step.result["sha256"]))
    shown = (f"restore {path}", f"from the backup {backup}", *_reversed(step.preview))
    step = Step(title=f"put {path} back", risk="hard", work=work, preview=shown)
    plan = make(acts, "undo", path, (step,))
    return guard(plan, rules or Rules()), patched


def _reversed(lines: Sequence[str]) -> list[str]:
    """The changed lines of a diff the other way round."""
    swap = {"-": "+", "+": "-"}
    changed = [line for line in lines if line[:1] in swap and line[:3] not in ("---", "+++")]
    return sorted((swap[line[0]] + line[1:] for line in changed), key=lambda line: line[0] == "+")
