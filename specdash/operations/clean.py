"""The plan that frees the cards: end what owns their memory, verify, remove what dead ranks left behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from specdash.monitor.spans import count
from specdash.operations.acts import Acts
from specdash.operations.freeing import key_of
from specdash.operations.plan import Place, Plan, Step
from specdash.operations.rules import Rules, guard, make
from specdash.operations.stop import IF_NEEDED, free_step
from specdash.operations.survey import Candidate, Survey, survey
from specdash.operations.work import Remove, Signal, Target

TERM_S, KILL_S = 5.0, 3.0
_FILES_SHOWN = 6
NOTHING = "nothing is found here that a dead server left"


async def prepare(acts: Acts, outside: Acts | None = None, *, rules: Rules | None = None) -> Plan:
    """Look, and plan to end what dead servers left. Changes nothing.

    ``--force others`` adds owners that may be somebody's living job, ``--force foreign`` those of other users
    and containers; a screen lets them be ticked and calls ``plan_for``. Raises ``RequestError`` where the
    holders cannot be listed.
    """
    rules = rules or Rules()
    seen = await survey(acts, outside)
    return plan_for(acts, seen, outside=outside, chosen=by_default(seen, rules), rules=rules)


def by_default(seen: Survey, rules: Rules) -> set[int]:
    """The pids that are ended unless the operator chooses otherwise."""
    return {
        one.holder.pid
        for one in seen.offered
        if (one.leftover or "others" in rules.forced) and (not one.foreign or "foreign" in rules.forced)
    }


def plan_for(
    acts: Acts,
    seen: Survey,
    *,
    outside: Acts | None = None,
    chosen: Collection[int] | None = None,
    rules: Rules | None = None,
) -> Plan:
    """The plan to end the chosen candidates (None: all of them)."""
    picked = [one for one in seen.offered if chosen is None or one.holder.pid in chosen]
    left = [one for one in seen.offered if one not in picked]
    steps = [*_end(picked, "host"), *_end(picked, "outside"), *_files(seen)]
    if acts.state.gpus:
        steps.append(free_step(acts.state, _cards(acts, seen, picked, left)))
    told = [*seen.warnings, *map(_not_touched, left)]
    told += [f"left alone: {line}" for line in seen.listed]
    if more := seen.leftovers.more:
        told.append(f"{count(more, 'more file', 'more files')} of dead processes are left for the next clean")
    if not any(step.risk == "hard" for step in steps) and not any(one.leftover for one in seen.offered):
        told.insert(0, NOTHING)
    subject = _subject(acts, picked)
    plan = make(acts, "clean", subject, steps, warnings=told)
    if outside is not None and outside.state.host is not None:
        plan = msgspec.structs.replace(plan, outside_boot=outside.state.host.boot)
    foreign = [one.line for one in picked if one.foreign]
    return guard(plan, rules or Rules(), foreign=foreign)


def _not_touched(one: Candidate) -> str:
    if one.foreign:
        return f"not touched: {one.line}: not ours (--force foreign ends it, too)"
    return f"not touched: {one.line}: may be a job that somebody wants (--force others ends it, too)"


def _subject(acts: Acts, picked: Sequence[Candidate]) -> str:
    indexes = sorted({index for one in picked for index in one.gpus})
    if indexes:
        return f"GPU {', '.join(map(str, indexes))}"
    return "the GPUs" if acts.state.gpus else "leftovers"


def _cards(
    acts: Acts, seen: Survey, picked: Sequence[Candidate], left: Sequence[Candidate]
) -> tuple[str, ...]:
    """What must be clean afterwards: every card that no living server and nobody left alone uses."""
    freed = {index for one in picked for index in one.gpus}
    kept = {index for one in left for index in one.gpus}
    return tuple(
        key_of(gpu)
        for gpu in acts.state.gpus
        if gpu.card.index not in kept
        and (gpu.card.index in freed or key_of(gpu) in seen.cards or not gpu.owners)
    )


def _end(picked: Sequence[Candidate], place: Place) -> Iterator[Step]:
    """SIGTERM for those that may obey, then SIGKILL. Exactly these: their families may be other people's."""
    mine = [one for one in picked if one.place == place]
    polite = [one for one in mine if not one.holder.zombie_leader and one.holder.state not in "Tt"]
    where = " on the host outside" if place == "outside" else ""
    if polite:
        yield _signal_step("TERM", f"ask {_many(polite)} to end{where}", polite, TERM_S, place)
    if mine:
        asked = f" ({IF_NEEDED})" if polite else ""
        yield _signal_step("KILL", f"kill {_many(mine)}{where}{asked}", mine, KILL_S, place)


def _signal_step(signal: str, title: str, picked: Sequence[Candidate], wait: float, place: Place) -> Step:
    targets: tuple[Target, ...] = tuple(one.holder.target for one in picked)
    lines = [f"SIG{signal} {one.line}" for one in picked]
    return Step(
        title=title,
        risk="hard",
        work=Signal(signal="TERM" if signal == "TERM" else "KILL", targets=targets, wait_s=wait),
        preview=(*lines, f"wait up to {wait:.0f} s"),
        place=place,
    )


def _many(picked: Sequence[Candidate]) -> str:
    if len(picked) == 1:
        return f"{picked[0].holder.pid} {picked[0].holder.name}"
    return f"{len(picked)} owners"


def _files(seen: Survey) -> list[Step]:
    files = seen.leftovers.files
    if not files:
        return []
    lines = [f"rm {file.path}  {file.size} bytes  {file.why}".rstrip() for file in files[:_FILES_SHOWN]]
    if len(files) > _FILES_SHOWN:
        lines.append(f"and {len(files) - _FILES_SHOWN} more")
    word = "file" if len(files) == 1 else "files"
    return [
        Step(
            title=f"remove {len(files)} {word} of dead processes",
            risk="hard",
            work=Remove(paths=tuple(file.path for file in files)),
            preview=tuple(lines),
        )
    ]
