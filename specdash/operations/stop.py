"""The plan that stops a server: its manager's own stop, then its engine's ladder, then everything left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from specdash.engines.loader import GENERIC
from specdash.engines.schema import Rung, Stop
from specdash.errors import SpecdashError
from specdash.intake.rules import default_rules
from specdash.monitor.servers import SHELLS
from specdash.monitor.state import HostState, Server
from specdash.operations import ladder
from specdash.operations.acts import Acts, Hands
from specdash.operations.freeing import chosen, indexes, key_of, limit
from specdash.operations.plan import Plan, Step
from specdash.operations.replies import Member, Row
from specdash.operations.rules import Rules, guard, make
from specdash.operations.scrub import argv_without_secrets
from specdash.operations.sight import Sight, look, titles
from specdash.operations.work import Free, Manage, Signal, Sweep, Target

IF_NEEDED = "if not ended by then"
"""Of a step that kills whom the one before has asked to end."""
_SETTLE_S = 1.0
_STATES = {"T": "stopped", "t": "stopped", "D": "waits in the kernel", "Z": "dead"}


async def prepare(acts: Acts, server: Server, *, rules: Rules | None = None) -> Plan:
    """The plan to kill a server, with literal signals and pids. Changes nothing.

    Raises ``SpecdashError`` where there is nothing to stop or it cannot be looked at.
    """
    rules = rules or Rules()
    sight = await look(Hands(acts), server)
    steps = tuple(stop_steps(acts.state, sight, forced=rules.forced))
    plan = make(acts, "kill", subject(sight.server), steps, warnings=warnings(sight))
    return guard(plan, rules, foreign=strangers(acts.state, sight.living))


def subject(server: Server) -> str:
    """``sglang:30000 (pid 4242)``."""
    return f"{server.name} (pid {server.pid})"


def stop_steps(state: HostState, sight: Sight, *, forced: Sequence[str] = ()) -> Iterator[Step]:
    """The steps of a stop, up to the cards' memory. Raises ``SpecdashError`` where nothing lives."""
    if not sight.living:
        raise SpecdashError(
            f"{sight.server.name}: none of its processes lives any more", "`clean` looks for what is left"
        )
    if sight.manager is not None and sight.manager.stop and "manager" not in forced:
        yield _manager_step(sight)
    orphaned = sight.orphaned(titles())
    which = ladder.condition(sight.server, sight.family.members, orphaned=orphaned)
    asked, killed = False, set[int]()
    for rung in ladder.rungs(_ladders(sight.server.engine), which):
        for step in _rung_step(sight, rung, asked=asked, killed=killed):
            yield step
            asked = asked or rung.signal != "KILL"
            if rung.signal == "KILL" and isinstance(step.work, Signal):
                killed |= {target.pid for target in step.work.targets}
    cards = cards_of(state, sight)
    if cards:
        yield free_step(state, cards)


def _ladders(engine: str) -> Stop:
    grammars = {grammar.name: grammar for grammar in default_rules().grammars}
    return (grammars.get(engine) or grammars[GENERIC]).spec.stop


def _manager_step(sight: Sight) -> Step:
    manager = sight.manager
    assert manager is not None
    return Step(
        title=f"let {manager.name} stop its {manager.what}",
        risk="hard",
        work=Manage(manager=manager.name, argv=manager.stop),
        preview=(" ".join(manager.stop),),
    )


def _rung_step(sight: Sight, rung: Rung, *, asked: bool, killed: Set[int]) -> Iterator[Step]:
    """``asked``: a step before it asks them to end, so this one is for those who have not.

    ``killed``: whom a step before it kills.
    """
    if rung.to == "group" and rung.signal == "KILL":
        work = Sweep(seeds=sight.seeds, run=sight.run, settle_s=_SETTLE_S if sight.manager else 0.0)
        lines = [f"SIGKILL {line(member)}" for member in sight.living if member.pid not in killed]
        lines.append("and again whatever of them is found, until nothing is")
        yield Step(title="end whatever is left", risk="hard", work=work, preview=tuple(lines))
        return
    aimed = ladder.aimed(rung, sight.main, sight.family.members)
    if not aimed:
        return
    targets = tuple(member.target for member in aimed)
    wait = ladder.grace_s(rung, sight.argv)
    preview = [f"SIG{rung.signal} {line(member)}" for member in aimed]
    if wait:
        preview.append(f"wait up to {wait:.0f} s for it to end")
    kills = rung.signal == "KILL"
    told = ladder.told(rung, sight.argv)
    says = "; ".join(filter(None, (IF_NEEDED if kills and asked else "", told)))
    who = _who(rung, aimed)
    title = f"kill {who}" if kills else f"ask {who} to end"
    yield Step(
        title=f"{title} ({says})" if says else title,
        risk="hard",
        work=Signal(signal=rung.signal, targets=targets, wait_s=wait, watch=_watched(sight, rung, targets)),
        preview=tuple(preview),
    )


def _watched(sight: Sight, rung: Rung, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """A grace is over when the whole server has ended, not only whoever was asked."""
    if rung.to == "stopped":
        return targets
    return tuple(member.target for member in sight.living)


def _who(rung: Rung, aimed: Sequence[Member]) -> str:
    if rung.to == "main":
        return "the main process"
    if rung.to == "stopped":
        return "what is stopped"
    return f"{aimed[0].pid} {aimed[0].name}" if len(aimed) == 1 else f"{len(aimed)} processes"


def line(member: Member) -> str:
    """A process in a preview: pid, title without secrets, and its state where that matters."""
    title = " ".join(argv_without_secrets(member.name.split(" ")))
    state = f"  {_STATES[member.state]}" if member.state in _STATES else ""
    return f"{member.pid}  {title}{state}"


def cards_of(state: HostState, sight: Sight) -> tuple[str, ...]:
    """The cards that it owns memory of."""
    pids = {member.pid for member in sight.family.members}
    ranks = {index for rank in sight.server.ranks for index in rank.gpus}
    return tuple(
        key_of(gpu)
        for gpu in state.gpus
        if gpu.card.index in ranks
        or any(owner.pid in pids or owner.server == sight.server.key for owner in gpu.owners)
    )


def free_step(state: HostState, cards: Sequence[str]) -> Step:
    """The verification: memory is back on every card."""
    gpus = chosen(state, cards)
    return Step(
        title=f"verify that GPU {indexes(gpus) or 'memory'} {'is' if len(gpus) < 2 else 'are'} clean",
        risk="read",
        work=Free(cards=tuple(cards)),
        preview=(f"no owner and {limit(gpus)}, in two samples; waits while memory falls",),
    )


def strangers(state: HostState, members: Sequence[Member]) -> list[str]:
    """Processes of other people, as they are named when one must type for them."""
    uid = state.host.uid if state.host else None
    return [f"{m.pid} {m.name} ({m.user or m.uid})" for m in members if uid is not None and m.uid != uid]


def closed_to_us(count: int, first: Sequence[Row] = ()) -> str:
    """What rights hide from us, with the first ones by name."""
    many = "a process" if count == 1 else f"{count} processes"
    names = [f"{one.pid} {one.comm} ({one.user or one.uid})" for one in first]
    if names and count > len(names):
        names.append(f"{count - len(names)} more")
    return f"{many} could not be looked into, the kernel refuses{': ' if names else ''}{', '.join(names)}"


def warnings(sight: Sight) -> list[str]:
    """What the operator should know first."""
    told = []
    manager = sight.manager
    if manager is not None and not manager.stop:
        told.append(f"it runs under {manager.name} ({manager.what}): {manager.advice}")
    if (
        sight.parent
        and not sight.run
        and sight.parent not in SHELLS
        and sight.main is not None
        and manager is None
    ):
        told.append(f"its parent is {sight.main.ppid} {sight.parent}: if that restarts it, stop that instead")
    told += [
        f"left alone: {line(one)} ({one.user}) only shares the session of a dead process"
        for one in sight.family.doubtful[:3]
    ]
    if sight.family.denied:
        told.append(closed_to_us(sight.family.denied, sight.family.closed))
    dead = [member for member in sight.family.members if member.zombie_parent is not None]
    for member in dead[:2]:
        parent = member.zombie_parent
        assert parent is not None
        told.append(f"{member.pid} is dead already; its parent {parent.pid} {parent.comm} must bury it")
    return told


def ended_by(plan: Plan, servers: Sequence[Server]) -> Iterator[Server]:
    """The servers that a plan at work has begun to end, or will have ended when it is over."""
    step = plan.steps[plan.active] if plan.active is not None else None
    if step is None or not isinstance(step.work, (Signal, Sweep, Manage)):
        return
    works = [step.work for step in plan.steps]
    pinned = {(seed.pid, seed.start) for work in works if isinstance(work, Sweep) for seed in work.seeds}
    for work in works:
        pinned |= {(one.pid, one.start) for one in work.targets} if isinstance(work, Signal) else set()
    yield from (server for server in servers if (server.pid, server.start) in pinned)
