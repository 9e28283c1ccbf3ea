"""What is to be looked up in the history of a host, and what is to be kept in it."""

from __future__ import annotations

from specdash.monitor.baseline import Baseline, call_of
from specdash.monitor.commandline import flag, launch_facts, positional_model
from specdash.monitor.learning import GoodStart, Kind, minor
from specdash.monitor.memory import Memory, ServerMemory


def kind_of(memory: Memory, server: ServerMemory) -> Kind | None:
    """With which earlier starts this one can be compared; None where it cannot.

    A made-up host teaches nothing. The name of a container is another one at each start, so there the
    host's name is what the operator calls it.
    """
    host = memory.picture.host
    if host is None or host.simulated or server.family.orphaned:
        return None
    argv, reading = server.family.main.argv, server.reading
    facts = launch_facts(argv)
    path = flag(argv, "--model-path", "--model") or positional_model(argv)
    model = path or reading.model or facts.model
    if not model:
        return None
    draft = flag(argv, "--speculative-draft-model-path") or ""
    return Kind(
        host=memory.picture.target if host.container else host.name,
        engine=server.family.engine,
        version=minor(reading.version),
        model=model,
        draft=" ".join(filter(None, (facts.speculation or reading.speculation, draft))),
        parallel=facts.parallel or reading.parallel or "TP1",
    )


def cards_of(memory: Memory) -> dict[str, str]:
    """The cards whose baseline can be looked up: UUID → the driver's way of counting."""
    host = memory.picture.host
    if host is None or host.simulated:
        return {}
    cards = (card.gpu.card for card in memory.cards.values())
    return {card.uuid: call_of(card) for card in cards if card.uuid}


def baselines(memory: Memory) -> dict[str, Baseline]:
    """What cards have shown without an owner since we look: to be kept."""
    host, known = memory.picture.host, cards_of(memory)
    if host is None:
        return {}
    return {
        uuid: Baseline(uuid=uuid, call=known[uuid], boot=host.boot, mib=card.idle.mib, at=memory.picture.now)
        for card in memory.cards.values()
        if (uuid := card.gpu.card.uuid) in known and uuid is not None and card.idle.mib is not None
    }


def lesson(memory: Memory, server: ServerMemory) -> GoodStart | None:
    """The start of this server, once it has become ready: to be kept. None: not yet, or no example."""
    course, host = server.course, memory.picture.host
    if course.ready_at is None or course.stalled or not course.laps or host is None:
        return None
    kind = kind_of(memory, server)
    if kind is None:
        return None
    return GoodStart(
        kind=kind,
        identity=f"{host.boot}/{server.key}",
        began_at=server.family.main.started,
        ready_at=course.ready_at,
        laps=course.laps,
        whole=not course.missed,
    )
