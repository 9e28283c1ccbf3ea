"""How the last start ended, read off the log that it wrote: whoever watched then, and whoever asks now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from specdash.errors import RequestError
from specdash.intake.rules import default_rules
from specdash.logs.jsonfile import unwrapped
from specdash.monitor.documents import Diagnosis
from specdash.monitor.logverdict import judge_log
from specdash.monitor.memory import Rules
from specdash.monitor.reader import begin, finish, read
from specdash.operations.acts import FILE_LIMIT, Hands
from specdash.operations.work import Launch

OF_FLAGS = frozenset(
    "argv_mangled config_invalid context_too_long draft_hidden_size_mismatch draft_missing kv_cache_too_small"
    " oom_capture oom_kv oom_runtime oom_weights unknown_architecture".split()
)
"""Diagnoses that lie in how a server was started: nothing but other flags, or another model, ends them."""


def of_flags(diagnoses: Sequence[Diagnosis]) -> str | None:
    """What a server died of, where the same flags would meet it again."""
    root = next((one for one in diagnoses if one.root and one.severity == "error"), None)
    return root.summary if root is not None and root.key in OF_FLAGS else None


async def last_end(hands: Hands, launch: Launch) -> str | None:
    """What the last start in this launch's log died of, where the same flags would meet it again.

    None also where the log cannot be read, or its last start is not seen to have died.
    """
    if launch.log is None:
        return None
    try:
        (found,) = await hands.stat_files([launch.log])
        size = (found.size or 0) if found.exists else 0
        if not size:
            return None
        raw = await hands.read_end(launch.log, size)
    except RequestError:
        return None
    return await asyncio.to_thread(_died_of, raw, launch.engine, default_rules(), cut=size > FILE_LIMIT)


def _died_of(raw: bytes, engine: str, rules: Rules, *, cut: bool) -> str | None:
    try:
        reading = begin(rules.grammars, engine)
    except ValueError:
        return None  # an engine that nobody has taught us
    for piece in unwrapped([raw[raw.find(b"\n") + 1 :] if cut else raw]):
        reading = read(reading, piece)
    judged = judge_log(finish(reading), rules.limits, rules.book)
    return of_flags(judged.diagnoses) if judged.state == "crashed" else None
