"""The runbooks of a profile: what is wrong with a step, by its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specdash.profile.conditions import ConditionError
from specdash.profile.conditions import parse as parse_condition
from specdash.profile.document import Mistake, Profile, RunbookStep
from specdash.profile.lines import line_of
from specdash.secrecy import redact
from specdash.wording import nearest

KINDS = ("do", "wait", "check", "patch", "run", "manual", "notify", "bench")
"""What a step can be; exactly one of them."""
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "within": ("wait", "run"),
    "unless": ("wait",),
    "variant": ("do",),
    "force": ("do",),
}
"""Keys that mean something only beside others."""
_STARTS = ("check", "launch", "restart")


def kinds_of(step: RunbookStep) -> list[str]:
    """What the step says it is."""
    return [word for word in KINDS if getattr(step, word) is not None]


def runbook_mistakes(profile: Profile, lines: Mapping[str, int]) -> Iterator[Mistake]:
    """Everything that is wrong with any step, by the profile's own names."""
    for name, runbook in profile.runbooks.items():
        key = f"runbooks.{name}.steps"
        for number, step in enumerate(runbook.steps):
            for word, says in step_mistakes(profile, step):
                at = f"{key}[{number}]"
                line = line_of(lines, f"{at}.{word}" if word else at)
                where = f"{key}.{word}" if word else key
                yield Mistake(key=where, line=line, says=f"step {number + 1}: {says}")


def step_mistakes(profile: Profile, step: RunbookStep) -> Iterator[tuple[str, str]]:
    """Each as the key that it is about and what is wrong."""
    given = kinds_of(step)
    if len(given) != 1:
        what = " and ".join(given) if given else "nothing"
        yield "", f"exactly one of {', '.join(KINDS)}; it has {what}"
        return
    for word, beside in _BESIDE.items():
        if getattr(step, word) and given[0] not in beside:
            yield word, f"only beside {' or '.join(beside)}"
    for word in ("wait", "check", "unless"):
        text: str | None = getattr(step, word)
        if text is not None:
            try:
                parse_condition(text)
            except ConditionError as error:
                yield word, error.message
    if step.run is not None and redact(" ".join(step.run)) != " ".join(step.run):
        yield "run", "a secret is never kept in a profile: let the command read it on the host"
    if step.patch is not None:
        told = [f"{name}={value}" for name, value in step.patch.set.items()]
        if any(redact(text) != text for text in told):
            yield "patch", "a secret is never kept in a profile: write it on the host"
    if step.variant is not None:
        if step.do is not None and step.do not in _STARTS:
            yield "variant", f"a {step.do} starts nothing"
        if step.variant not in profile.variants:
            says = f"there is no [variants.{step.variant}]{nearest(step.variant, profile.variants)}"
            yield "variant", says
    if step.bench is not None and step.bench not in profile.benchmarks:
        yield "bench", f"there is no [benchmarks.{step.bench}]{nearest(step.bench, profile.benchmarks)}"
