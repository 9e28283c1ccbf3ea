"""Plans that start a server, and that start it anew: preflight, start, milestones, one token."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from specdash.monitor.environment import INTERESTING
from specdash.monitor.spans import count
from specdash.operations import patch, preflight
from specdash.operations.acts import Acts, Hands, by_unit
from specdash.operations.checks import Line, passes, told
from specdash.operations.lastend import last_end
from specdash.operations.plan import Kind, Plan, Step
from specdash.operations.rules import Rules, guard, make
from specdash.operations.scrub import launch_without_secrets
from specdash.operations.sight import SESSION_ONLY, Sight, titles
from specdash.operations.stop import stop_steps, strangers, warnings
from specdash.operations.stop import subject as subject_of
from specdash.operations.work import Ask, Check, Edit, Follow, Launch, Start


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """Values that a file must have before the start."""

    path: str
    edits: tuple[Edit, ...]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started, and what must be there for it."""

    launch: Launch
    files: tuple[str, ...] = ()
    """``needs.files`` of the profile: what is wanted after the start, checked before it."""
    key_env: str | None = None
    """Name of the variable on the host that holds the server's key."""
    last_good: str | None = None
    """The engine's version at the last start that became ready."""
    last_end: str | None = None
    """What the same start ended with the last time."""
    otherwise: bool = False
    """It is not the same start as the last time: other flags, other variables."""
    missing: tuple[str, ...] = ()
    """What of a found server's start could not be read."""
    source: str = ""
    """Where the start is known from, if no profile and no running server tells."""
    changes: tuple[FileChange, ...] = ()
    """A variant's patches."""


async def prepare(acts: Acts, wish: Wish, *, rules: Rules | None = None, kind: Kind = "launch") -> Plan:
    """The plan to launch. Its first step carries the preflight as it looks now; red refuses it."""
    rules = rules or Rules()
    wish = await informed(acts, wish)
    lines = await examined(acts, wish, rules)
    steps = (*await _changes(acts, wish), *start_steps(wish, rules, lines))
    told_first = [*filter(None, [wish.source]), *_missing(wish)]
    plan = make(acts, kind, wish.launch.name, steps, warnings=told_first)
    return _refused(guard(plan, rules), lines, rules)


async def prepare_restart(acts: Acts, sight: Sight, wish: Wish, *, rules: Rules | None = None) -> Plan:
    """Stop it or what it has left behind, verify, preflight, launch, follow, token.

    What a preflight can tell while the old server still runs is looked at now: nothing is stopped for a
    launch that cannot work.
    """
    rules = rules or Rules()
    leftover = sight.orphaned(titles())
    if leftover:
        wish = await informed(acts, wish)
    lines = await examined(acts, wish, rules, lasting=True)
    stop = tuple(stop_steps(acts.state, sight, forced=rules.forced))
    steps = (
        *stop,
        *await _changes(acts, wish),
        *start_steps(wish, rules, lines, None if leftover else sight.env),
    )
    told_first = [*warnings(sight), *_missing(wish)]
    plan = make(acts, "restart", subject_of(sight.server), steps, warnings=told_first)
    plan = guard(plan, rules, foreign=strangers(acts.state, sight.living))
    return _refused(plan, lines, rules)


async def informed(acts: Acts, wish: Wish) -> Wish:
    """The same, with what the last start of it ended with, as its log says; for where nothing of it lives."""
    if wish.otherwise or wish.last_end is not None:
        return wish
    return msgspec.structs.replace(wish, last_end=await last_end(Hands(acts), wish.launch))


async def examined(acts: Acts, wish: Wish, rules: Rules, *, lasting: bool = False) -> tuple[Line, ...]:
    """The preflight as it looks now. ``lasting``: only what is the same after the old server is stopped."""
    return _expecting(await preflight.examine(Hands(acts), _check(wish, rules), lasting=lasting), wish)


async def _changes(acts: Acts, wish: Wish) -> list[Step]:
    """The variant's patches, as far as the files do not have these values already."""
    steps: list[Step] = []
    for change in wish.changes:
        try:
            plan = await patch.prepare(acts, change.path, change.edits)
        except patch.NothingToDo:
            continue
        steps.extend(plan.steps)
    return steps


def _expecting(lines: Sequence[Line], wish: Wish) -> tuple[Line, ...]:
    """A draft that does not fit yet is no reason to refuse what will patch it: the plan looks again after."""
    if not wish.changes:
        return tuple(lines)
    return tuple(
        msgspec.structs.replace(line, mark="warning")
        if line.key == "draft" and line.mark == "error"
        else line
        for line in lines
    )


def start_steps(
    wish: Wish, rules: Rules, lines: Sequence[Line], runs_with: Mapping[str, str] | None = None
) -> tuple[Step, ...]:
    """Preflight, start, milestones, token. ``runs_with``: the environment of the server that is replaced."""
    launch = wish.launch
    return (
        Step(
            title="preflight",
            risk="read",
            work=_check(wish, rules),
            preview=tuple(told(line) for line in lines),
        ),
        Step(
            title=f"start {launch.name}",
            risk="hard",
            work=Start(launch=launch),
            preview=shown(launch, runs_with),
        ),
        Step(title="follow it until it serves", risk="read", work=Follow(launch=launch)),
        Step(
            title="ask for one token",
            risk="soft",
            work=Ask(launch=launch, key_env=wish.key_env),
            preview=("POST /v1/completions, max_tokens 1",),
        ),
    )


def _check(wish: Wish, rules: Rules) -> Check:
    return Check(
        launch=wish.launch,
        files=wish.files,
        forced=rules.forced,
        last_good=wish.last_good,
        last_end=wish.last_end,
    )


def shown(launch: Launch, runs_with: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The literal start, without secrets; of the environment also what it is beside that of before."""
    clean = launch_without_secrets(launch)
    if by_unit(clean):
        return (f"{_STARTS[clean.how]} {clean.unit}",)
    lines = [shlex.join(clean.argv)]
    lines += _environment(clean, None if runs_with is None else _beside(launch, runs_with))
    for word, value in (("in", clean.cwd), ("as", clean.user), ("output appended to", clean.log)):
        if value:
            lines.append(f"{word} {value}")
    if clean.how != "process":
        lines.append(f"by {clean.how} {clean.unit or ''}".rstrip())
    return tuple(lines)


def _environment(clean: Launch, beside: str | None) -> Iterator[str]:
    """What it gets, and how that differs from what runs now: a comparison of the two is as fair as that."""
    if clean.whole_env:
        told = beside or "as it had them"
        yield f"environment: {count(len(clean.env), 'variable')} and no other: {told}"
        return
    yield f"environment: the login's{', and over it:' if clean.env else ', and nothing over it'}"
    yield from (f"{name}={value}" for name, value in clean.env.items())
    if beside is not None:
        yield f"beside the server that runs now: {beside}"


def _beside(launch: Launch, runs_with: Mapping[str, str]) -> str:
    """``5 as it has them, NCCL_ALGO changed, VLLM_USE_V1 left out``.

    Over a login's environment only what steers an engine is looked for: the rest comes from there.
    """
    env, whole = launch.env, launch.whole_env
    steers = {
        name for name in runs_with if name not in SESSION_ONLY and (whole or name.startswith(INTERESTING))
    }
    changed = {name for name in env.keys() & runs_with.keys() if env[name] != runs_with[name]}
    new, gone = env.keys() - runs_with.keys(), steers - env.keys()
    alike = len(env) - len(changed) - len(new)
    told = [f"{'all' if alike == len(env) else alike or 'none'} as it has them"] if env else []
    for names, what in (
        (changed, "changed"),
        (new, "new"),
        (gone, "left out" if whole else "left to the login"),
    ):
        told += [f"{', '.join(sorted(names))} {what}"] if names else []
    return ", ".join(told if gone or whole else [*told, "it has no other that steers an engine"])


_STARTS = {"systemd": "systemctl start", "docker": "docker start"}


def _missing(wish: Wish) -> list[str]:
    return [f"not known: {one}" for one in wish.missing]


def _refused(plan: Plan, lines: Sequence[Line], rules: Rules) -> Plan:
    """Red that is not forced refuses the plan, and so do keys that were not kept."""
    starts = [step.work.launch for step in plan.steps if isinstance(step.work, Start)]
    if any(launch.secrets_lost for launch in starts):
        words = "its command line had keys or passwords, which are never kept: write it into a profile"
        return msgspec.structs.replace(plan, refusal=words)
    red = [line for line in lines if not passes(line, rules.forced)]
    if not red:
        return plan
    words = "; ".join(f"{line.key}: {line.seen}" for line in red)
    keys = " ".join(f"--force {key}" for key in dict.fromkeys(line.key for line in red))
    return msgspec.structs.replace(plan, refusal=f"preflight: {words} ({keys} goes on all the same)")
