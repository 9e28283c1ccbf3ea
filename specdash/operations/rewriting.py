"""Changing a file on the host, and taking the change back: only if it is still the file that was shown."""

from __future__ import annotations

import hashlib

from specdash.errors import RequestError
from specdash.operations import edits
from specdash.operations.acts import unfinished
from specdash.operations.context import Context
from specdash.operations.replies import Written
from specdash.operations.work import Look, Outcome, TakeBack, Write


def digest(data: bytes) -> str:
    """As the host names a file's content."""
    return hashlib.sha256(data).hexdigest()


async def write(ctx: Context, work: Write) -> Outcome:
    """Make the new bytes from the file as it is now; the host writes them if it still is what was shown."""
    file = await ctx.hands.read_file(work.path)
    if file.sha256 == work.expect:
        if work.secrets_lost:
            return Outcome(
                state="failed", evidence="its new value was a secret and was not kept: patch again"
            )
        data = edits.apply(work.path, file.bytes, [(edit.key, edit.value) for edit in work.edits])
    else:
        # After a cut the host may have written already; its record of the token tells. Else it refuses.
        data = file.bytes
    if digest(data) != work.becomes:
        return Outcome(state="failed", evidence=_changed(work.path))
    try:
        written = await ctx.hands.write_file(work.path, data, work.expect, work.link, ctx.token())
    except RequestError as error:
        if not unfinished(error):
            raise
        if (await ctx.hands.read_file(work.path)).sha256 == work.becomes:
            said = "written; the host's answer was lost, and with it the name of the backup: no undo by U"
            return Outcome(evidence=said, result={"path": work.path, "sha256": work.becomes})
        # It was not written: compare-and-swap makes asking again safe.
        written = await ctx.hands.write_file(work.path, data, work.expect, work.link, ctx.token("again"))
    return _written(written, work.path)


def _written(written: Written, path: str) -> Outcome:
    evidence = f"written; the old one is kept as {written.backup}" if written.backup else "written"
    result = {"backup": written.backup, "sha256": written.sha256, "path": path}
    return Outcome(evidence=evidence, notes=written.notes, result=result)


async def look(ctx: Context, work: Look) -> Outcome:
    """The file is what was shown."""
    file = await ctx.hands.read_file(work.path)
    if file.sha256 != work.becomes:
        return Outcome(state="failed", evidence=f"{work.path} is not what was written: somebody changed it")
    return Outcome(evidence="the file is as shown")


async def take_back(ctx: Context, work: TakeBack) -> Outcome:
    """Put the backup back."""
    try:
        written = await ctx.hands.restore(work.backup, work.expect, ctx.token())
    except RequestError as error:
        if not unfinished(error):
            raise
        written = await ctx.hands.restore(work.backup, work.expect, ctx.token("again"))
    return Outcome(evidence=f"{work.path} is as it was before", notes=written.notes)


def _changed(path: str) -> str:
    return f"{path} has changed since it was shown: look again and patch again"
