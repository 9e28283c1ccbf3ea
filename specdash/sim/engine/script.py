"""The course of a start as a list of acts, each with its second: what is written, shown and done when.

Pure: no clock, no process, no file. The words are SGLang 0.5.16's as it was recorded with EAGLE-3 on one
and two ranks; only durations and sizes are the story's (a trillion parameters on eight 96 GB cards).
"""

from __future__ import annotations

from collections.abc import Iterator

from specdash.sim.engine import bars, texts
from specdash.sim.engine.acts import Act, Say, Setting
from specdash.sim.engine.captures import captures
from specdash.sim.engine.sizes import CONTEXT_MIB, DRAFT_MIB, MET_MIB, TARGET_MIB, gib, pool
from specdash.sim.engine.writer import TheEnd, Writer
from specdash.sim.scenarios import Course


def script(course: Course, setting: Setting) -> list[Act]:
    """All acts of one start in the order of their time; it ends with an open port, a hang or a crash."""
    w = Writer(course, setting)
    try:
        _boot(w)
        _meet(w)
        _weights(w)
        if setting.draft:
            _draft(w)
        _memory_pools(w)
        captures(w)
        _open(w)
    except TheEnd:
        pass
    return sorted(w.acts, key=lambda act: act.at)


def _boot(w: Writer) -> None:
    """Imports and arguments: long silences that mean nothing."""
    w.t = 17.2
    for text in texts.RECOMMENDED:
        w.say(text, bare=True)
    w.t = 21.4
    w.say("Attention backend not specified. Use triton backend by default.")
    if w.setting.draft:
        w.say(texts.RUNNING_RESET, after=0.5)
    w.t = 24.5
    w.say("Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit")
    w.say(texts.server_args(w.setting))
    w.t = 25.5
    w.say("Using default HuggingFace chat template with detected content format: string")
    w.t = 26.0
    w.do("spawn")
    w.show("importing", 0)
    w.t = 44.0
    w.do("title")


def _meet(w: Writer) -> None:
    """The ranks find each other."""
    w.t = begun = 47.3
    w.show("meeting", CONTEXT_MIB)
    for rank in w.ranks:
        w.say("Init torch distributed begin.", rank, after=w.late(rank) * 3.1)
        w.say(texts.HOSTNAME_WARNING, bare=True, after=w.late(rank) * 3.1 + 0.16)
    w.t += 3.7
    w.say("sglang is using nccl==2.28.9", 0)
    w.t += 1.4
    w.show("meeting", MET_MIB)
    took, used = w.t - begun, gib(MET_MIB - CONTEXT_MIB)
    w.all_say(
        lambda rank: (
            f"Init torch distributed ends. elapsed={took - w.late(rank) * 3.1:.2f} s, mem usage={used} GB"
        ),
        0.02,
    )


def _weights(w: Writer) -> None:
    """The target's shards."""
    w.t += 1.5
    begun = w.t
    w.all_say(lambda _: f"Load weight begin. avail mem={w.avail()} GB", 0.9)
    # The parameters are allocated at once, before the first shard: memory shows no progress.
    w.show("loading", MET_MIB + TARGET_MIB)
    w.t += 0.2
    ends = list(_shard_ends(w.course))
    w.bar(bars.shards("Multi-thread loading shards", ends))
    w.t += ends[-1]
    lag = dict(w.course.lag)
    for rank in w.ranks:
        # Rank 0 draws the bar and then arranges its tensors; others may be done before the bar is closed.
        at = w.t + lag.get(rank, 9.5 if rank == 0 else 8.0 - 30.0 * (1.0 - w.late(rank)))
        text = texts.weight_end(at - begun, "DeepseekV3ForCausalLM", w, TARGET_MIB)
        w.acts.append(Say(at, text, rank))
    w.show("arranging")
    for rank, late in lag.items():
        w.show("waiting", after=9.6, odd=(rank, "loading"))
        w.show("arranging", after=late)
    w.t += max(9.6, *lag.values(), 0.0)


def _shard_ends(course: Course) -> Iterator[float]:
    pauses = dict(course.pauses)
    t = 0.0
    for n in range(course.shards):
        # Storage is uneven: 0.6 to 1.4 of the mean.
        t += course.shard_s * (0.6 + 0.8 * (n * 7 % 11) / 10) + pauses.get(n, 0.0)
        yield t


def _draft(w: Writer) -> None:
    """The draft model: a second, short load that is not a step back."""
    w.t += 1.1
    for rank in w.ranks:
        for text in texts.MOE_BACKENDS:
            w.say(text, rank, after=w.late(rank) * 0.01)
    target, draft = w.setting.target_context, w.setting.draft_context
    if draft < target:
        if w.course.draft_is_strict and not w.setting.override:
            w.crash(texts.context_error(target, draft), [3, 0, 6])
        for rank in w.ranks:
            w.say(texts.context_warning(target, draft), rank)
            w.say(f"Overriding the draft model's max_position_embeddings to {target}.", rank)
    w.all_say(lambda _: "Init torch distributed begin.", 0.01)
    w.all_say(lambda _: "Init torch distributed ends. elapsed=0.00 s, mem usage=0.00 GB", 0.01)
    begun = w.t
    w.all_say(lambda _: f"Load weight begin. avail mem={w.avail()} GB", 0.01)
    w.show("loading", w.mib + DRAFT_MIB)
    w.bar(bars.shards("Multi-thread loading shards", [2.6]))
    w.t += 2.65
    w.all_say(lambda _: texts.weight_end(w.t - begun, "LlamaForCausalLMEagle3", w, DRAFT_MIB), 0.08)


def _memory_pools(w: Writer) -> None:
    """The KV caches of both models: one jump of memory each."""
    w.t += 1.4
    kv = pool(w.setting)
    for mib in filter(None, (kv.target_mib, kv.draft_mib)):
        w.show("arranging", w.mib + mib)
        for rank in w.ranks:
            w.say(texts.kv_allocated(kv.tokens, mib), rank, after=w.late(rank) * 0.04)
            w.say(f"Memory pool end. avail mem={w.avail()} GB", rank, after=w.late(rank) * 0.04 + 0.001)
        w.t += 0.05


def _open(w: Writer) -> None:
    """The scheduler is ready and the port opens; what follows is live, not scripted."""
    w.t += 0.1
    w.say(texts.scheduler_ready(pool(w.setting).tokens, w), 0)
    w.all_say(lambda _: texts.TREE_CACHE, 0.05)
    w.t += 0.25
    w.show("ready")
    w.do("open")
