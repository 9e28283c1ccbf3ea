"""When a card is clean, and waiting for it: VERDICT §4's rule over the pictures as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from specdash.monitor.baseline import DEFAULT_MIB, baseline_mib
from specdash.monitor.owners import sees_all
from specdash.monitor.state import Gpu, HostState
from specdash.operations.context import Context
from specdash.operations.work import Free, Outcome

ABOVE_BASELINE_MIB = 128
SAMPLES = 2
SAMPLE_EVERY_S = 1.0
SAMPLES_APART_S = 0.5
"""On this machine's clock: a simulated host's may run fast."""
FALLING_MIB = 64
FLAT_S = 12.0
"""Memory that has not fallen for so long does not fall any more. Longer than one slow sample."""
PAUSE_S = 0.25

Word: TypeAlias = Literal["clean", "freeing", "held", "unknown"]


def key_of(gpu: Gpu) -> str:
    """What a card is called in a plan: its UUID, else its index."""
    return gpu.card.uuid or str(gpu.card.index)


def ceiling_mib(gpu: Gpu) -> int:
    """Up to how much used memory counts as clean: the idle baseline and 128 MiB."""
    return baseline_mib(gpu.card, gpu.baseline_mib) + ABOVE_BASELINE_MIB


def limit(gpus: Sequence[Gpu]) -> str:
    """Up to how much may be in use, and where that comes from: it is another before a card was seen idle."""
    most = sorted({ceiling_mib(gpu) for gpu in gpus})
    if len(most) > 1:
        return (
            f"at most {most[0]} to {most[-1]} MiB in use (what each shows idle + {ABOVE_BASELINE_MIB} spare)"
        )
    learned = bool(gpus) and all(gpu.baseline_mib is not None for gpu in gpus)
    ceiling = most[0] if most else DEFAULT_MIB["v2"] + ABOVE_BASELINE_MIB
    idle = f"{ceiling - ABOVE_BASELINE_MIB} idle, {'as seen' if learned else 'assumed'},"
    return f"at most {ceiling} MiB in use ({idle} + {ABOVE_BASELINE_MIB} spare)"


def is_clean(gpu: Gpu) -> bool | None:
    """In this one sample: no owner, and no more in use than an idle card shows. None: cannot be read."""
    if gpu.card.used_mib is None or gpu.card.processes is None:
        return None
    return not gpu.owners and gpu.card.used_mib <= ceiling_mib(gpu)


def says(gpu: Gpu, state: HostState) -> str:
    """Why a card is not clean, and who has it."""
    card = gpu.card
    if card.used_mib is None or card.processes is None:
        return f"GPU {card.index}: {card.error or 'its memory or its owners cannot be read'}"
    held = f"GPU {card.index} holds {card.used_mib / 1024:.1f} GiB"
    known = [owner for owner in gpu.owners if owner.known]
    if known:
        return f"{held}: {', '.join(f'{owner.pid} {owner.label}' for owner in known[:3])}"
    ghosts = ", ".join(str(owner.pid) for owner in gpu.owners[:3])
    all_seen = state.host is not None and sees_all(state.host)
    if gpu.owners and all(owner.ended or all_seen for owner in gpu.owners):
        return f"{held} for pid {ghosts}, which has ended: `clean` finds and ends what keeps it"
    nobody = f"for pid {ghosts}, which is not in this process table" if ghosts else "and no owner is listed"
    where = ", here or outside this container" if state.host and state.host.container else ""
    return f"{held} {nobody}: `clean` looks who has the device open{where}"


def indexes(cards: Sequence[Gpu]) -> str:
    """``1``, ``0, 3``, ``0–7``."""
    numbers = [gpu.card.index for gpu in cards]
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers))


@dataclass
class Samples:
    """What the last samples of one card showed. Time in which no sample comes accuses nobody."""

    stamp: float | None = None
    """The newest sample's own time."""
    seen: float = 0.0
    """When it came (monotonic)."""
    counted: float = 0.0
    good: int = 0
    lowest: int | None = None
    flat_s: float = 0.0
    """For how long samples have come and none was lower."""

    def take(self, gpu: Gpu, now: float) -> Word:
        """One look at the newest sample."""
        clean, used = is_clean(gpu), gpu.card.used_mib
        if clean is None or used is None:
            return "unknown"
        stamp = gpu.card.at or gpu.at
        if stamp != self.stamp:
            if self.stamp is not None:
                self.flat_s += min(now - self.seen, 2 * SAMPLE_EVERY_S)
            self.stamp, self.seen = stamp, now
            if self.lowest is None or used <= self.lowest - FALLING_MIB:
                self.lowest, self.flat_s = used, 0.0
            if clean and (self.good == 0 or now - self.counted >= SAMPLES_APART_S):
                self.good, self.counted = self.good + 1, now
        if not clean:
            self.good = 0
        if self.good >= SAMPLES:
            return "clean"
        return "freeing" if clean or self.flat_s < FLAT_S else "held"


@dataclass
class Watch:
    """Looks at some cards until each is clean or will not become it."""

    cards: Sequence[str]
    _samples: dict[str, Samples] = field(default_factory=dict)

    def look(self, state: HostState, now: float) -> tuple[Word, str]:
        """The word for all of them together, and what to say. ``now``: monotonic seconds."""
        gpus = chosen(state, self.cards)
        if not gpus:
            return "unknown", state.gpu_error or "no GPU is seen"
        words = [(self._samples.setdefault(key_of(gpu), Samples()).take(gpu, now), gpu) for gpu in gpus]
        for word in ("held", "unknown"):
            found = [gpu for each, gpu in words if each == word]
            if found and not any(each == "freeing" for each, _ in words):
                return word, "; ".join(says(gpu, state) for gpu in found)
        waiting = [gpu for each, gpu in words if each != "clean"]
        if not waiting:
            return "clean", _all_clean(gpus)
        full = [gpu for gpu in waiting if not is_clean(gpu)]
        if not full:
            return "freeing", f"GPU {indexes(waiting)} clean at the first look, a second one follows"
        held = sum(gpu.card.used_mib or 0 for gpu in full) / 1024
        return "freeing", f"still freeing: {held:.1f} GiB on GPU {indexes(full)}"


def chosen(state: HostState, cards: Sequence[str]) -> list[Gpu]:
    """The cards that a plan means; all where it names none."""
    return [gpu for gpu in state.gpus if not cards or key_of(gpu) in cards]


def _all_clean(gpus: Sequence[Gpu]) -> str:
    most = max(gpu.card.used_mib or 0 for gpu in gpus)
    return f"GPU {indexes(gpus)} clean: {'at most ' if len(gpus) > 1 else ''}{most} MiB in use, no owner"


async def free(ctx: Context, work: Free) -> Outcome:
    """Wait for the cards, as long as their memory falls. Time without a link does not count."""
    watch = Watch(work.cards)
    waited, before = 0.0, ctx.clock.monotonic()
    while True:
        state, now = ctx.hands.state, ctx.clock.monotonic()
        waited += now - before if state.link.state == "live" else 0.0
        before = now
        word, words = watch.look(state, now)
        if word == "clean":
            return Outcome(evidence=words)
        if word == "held" or waited >= work.limit_s or ctx.cancelled():
            return Outcome(state="failed", evidence=f"not clean: {words}")
        if word == "unknown" and waited >= FLAT_S:
            return Outcome(state="failed", evidence=f"cannot be verified: {words}")
        ctx.say(words, None)
        await ctx.clock.sleep(PAUSE_S)
