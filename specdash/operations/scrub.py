"""A plan as it may be kept on disk: no key, token or password in it.

What was taken out is marked, so that a step which needs it says so instead of doing half of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specdash.operations.plan import Plan, Step
from specdash.operations.work import Ask, Check, Edit, Follow, Launch, Start, Work, Write
from specdash.sanitise import REDACTED, clean_line, redact

replace = msgspec.structs.replace


def scrub(plan: Plan) -> Plan:
    """The same plan without secrets."""
    return replace(plan, steps=tuple(map(_step, plan.steps)))


def _step(step: Step) -> Step:
    return replace(
        step,
        work=_work(step.work),
        preview=tuple(map(clean_line, step.preview)),
        evidence=clean_line(step.evidence),
        notes=tuple(map(clean_line, step.notes)),
    )


def _work(work: Work) -> Work:
    if isinstance(work, (Check, Start, Follow, Ask)):
        return replace(work, launch=launch_without_secrets(work.launch))
    if isinstance(work, Write):
        edits = tuple(_edit(edit) for edit in work.edits)
        return work if edits == work.edits else replace(work, edits=edits, secrets_lost=True)
    return work


def _edit(edit: Edit) -> Edit:
    return replace(edit, value=value_without_secret(edit.key, edit.value))


def launch_without_secrets(launch: Launch) -> Launch:
    """A launch as it may be kept or shown; marked where something was taken out."""
    argv = argv_without_secrets(launch.argv)
    env = {name: value_without_secret(name, value) for name, value in launch.env.items()}
    lost = launch.secrets_lost or argv != launch.argv or env != launch.env
    return replace(launch, argv=argv, env=env, secrets_lost=lost)


def value_without_secret(name: str, value: str) -> str:
    """A variable's value, or that it is a secret."""
    shown = redact(f"{name}={value}")
    return value if shown == f"{name}={value}" else REDACTED


def argv_without_secrets(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line without what stands behind ``--api-key`` and its like."""
    shown: list[str] = []
    for index, word in enumerate(argv):
        before = argv[index - 1] if index else ""
        pair = f"{before} {word}"
        told = redact(pair)
        if before.startswith("-") and not word.startswith("-") and told != pair and redact(before) == before:
            shown.append(REDACTED)
        else:
            shown.append(redact(word))
    return tuple(shown)
