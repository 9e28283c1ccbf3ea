"""What befalls the simulated host: a table. A scenario is a list of starts of the server, a start is data.

All durations are seconds of the host's own clock. ``--speed`` turns that clock; it changes no number here.
"""

from __future__ import annotations

from textwrap import fill
from typing import Literal, NamedTuple

Part = Literal["prefill", "verify", "draft prefill", "draft decode"]
"""The captures of a speculative start, in the order in which they happen."""


class Halt(NamedTuple):
    """A collective hang in graph capture: one rank does not come, the others wait for ever."""

    part: Part
    shape: int
    """How many shapes of that capture are done when it hangs."""
    guilty: int
    """The rank that does not come: 0 % utilisation while the others spin."""


class Crash(NamedTuple):
    """Out of GPU memory on one rank while a graph is captured."""

    part: Part
    shape: int
    rank: int


class Course(NamedTuple):
    """One start of the server, from its first breath to whatever becomes of it."""

    age_s: float = 0.0
    """How long ago it began when the simulation begins: it is *found*, not watched."""
    shards: int = 64
    shard_s: float = 18.4
    """Seconds a shard takes; 64 of them are the story's twenty minutes."""
    pauses: tuple[tuple[int, float], ...] = ()
    """(shard, seconds): storage that holds its breath before that shard."""
    lag: tuple[tuple[int, float], ...] = ()
    """(rank, seconds): that rank ends its weights so much later than the others."""
    first_shape_s: float = 14.0
    """Seconds that the very first shape of the first capture takes."""
    compilers: bool = False
    """A kernel is compiled meanwhile: ninja, nvcc and cicc run below the scheduler."""
    warmup_s: float = 24.0
    draft_is_strict: bool = False
    """This build refuses a draft whose context is shorter than the target's; others only warn."""
    halt: Halt | None = None
    crash: Crash | None = None
    held_gpu: int | None = None
    """A helper that this rank forked keeps its GPU memory when the server is gone."""
    held_apart: bool = False
    """It has a session of its own and no title: nothing but the open card shows whose it is."""
    killed: bool = False
    """When the scenario has come to its point, somebody kills the main process with -9."""
    traffic: bool = True
    """Clients ask now and then, so that the serving figures live."""


class Scenario(NamedTuple):
    """A night on the host."""

    about: str
    starts: tuple[Course, ...]
    """The first is the server that the operator finds; the last is repeated for every later start."""
    draft_context: int = 262144
    """``max_position_embeddings`` of the draft model's config.json on this host."""
    steps: int = 3
    """Speculative steps on the found server's command line."""
    flags: tuple[str, ...] = ()
    """What else stands there."""


_HANG = Halt("verify", 6, guilty=3)

# A start that repairs has no clients yet: what is measured then is shared with nobody.
SCENARIOS: dict[str, Scenario] = {
    "healthy": Scenario("from zero to serving while you watch", (Course(),)),
    "zombie": Scenario(
        "stuck in graph capture for hours; when killed, GPU 1 keeps 76 GiB and the draft fits no more",
        (
            Course(age_s=8 * 3600.0, halt=_HANG, held_gpu=1, held_apart=True),
            Course(draft_is_strict=True, traffic=False),
        ),
        draft_context=131072,
    ),
    "zombie-live": Scenario("the same hang while you watch", (Course(halt=_HANG), Course(traffic=False))),
    "mismatch": Scenario(
        "the draft's context is shorter than the target's, and this build takes that for an error",
        (Course(draft_is_strict=True),),
        draft_context=131072,
    ),
    "oom": Scenario(
        "one rank runs out of GPU memory in graph capture",
        (Course(crash=Crash("verify", 2, rank=5)),),
        flags=("--mem-fraction-static", "0.98"),
    ),
    "slow-but-alive": Scenario(
        "storage so slow that shards stand still for minutes, but bytes keep coming",
        (Course(shards=24, shard_s=95.0, pauses=((5, 190.0), (14, 260.0))),),
    ),
    "jit": Scenario(
        "the first capture stands still for minutes while a kernel is compiled",
        (Course(first_shape_s=260.0, compilers=True),),
    ),
    "orphan": Scenario(
        "somebody killed the stuck server with -9, and a process that rank 1 forked keeps 76 GiB of its GPU",
        (Course(age_s=8 * 3600.0, halt=_HANG, held_gpu=1, killed=True), Course(traffic=False)),
    ),
    "rank-lag": Scenario("one rank is minutes behind the others", (Course(lag=((5, 170.0),)),)),
}


def listed(width: int = 76) -> str:
    """All of them with what there is to see, for a page of help: nobody else wraps its lines."""
    return "\n".join(
        fill(scenario.about, width, initial_indent=f"  {name:<15} ", subsequent_indent=" " * 18)
        for name, scenario in SCENARIOS.items()
    )
