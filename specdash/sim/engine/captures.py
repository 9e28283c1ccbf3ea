"""The graph captures of a start: up to four passes, each with a bar on rank 0, and where they stop."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.sim.engine import bars, texts
from specdash.sim.engine.acts import DECODE_SHAPES, PREFILL_SHAPES, Say
from specdash.sim.engine.sizes import GRAPHS_MIB, LEFT_MIB, USABLE_MIB, captured
from specdash.sim.engine.writer import TheEnd, Writer
from specdash.sim.scenarios import Part


def captures(w: Writer) -> None:
    """Prefill, verify (or decode), and with speculation the draft's own two."""
    shapes, sizes = str(list(PREFILL_SHAPES)), str(list(DECODE_SHAPES))
    first = [w.course.first_shape_s] + [0.42] * (len(PREFILL_SHAPES) - 1)
    _capture(w, "prefill", f"backend=breakable, num_tokens={shapes}", first)
    tokens = w.setting.draft_tokens if w.setting.draft else 1
    times = [1.9] + [0.62] * (len(DECODE_SHAPES) - 1)
    _capture(w, "verify", f"backend=full, num_tokens_per_req={tokens}, bs={sizes}", times)
    if not w.setting.draft:
        return
    _capture(w, "draft prefill", f"backend=breakable, num_tokens={shapes}", [0.05] * len(PREFILL_SHAPES))
    if w.setting.steps > 1:
        times = [6.1] + [0.24] * (len(DECODE_SHAPES) - 1)
        _capture(w, "draft decode", f"backend=full, num_tokens_per_req=1, bs={sizes}", times)


def _capture(w: Writer, part: Part, about: str, times: Sequence[float]) -> None:
    """One pass: begin on the ranks that capture it, the bar of rank 0, end."""
    # The draft's decode graphs are captured by rank 0 alone.
    speaking = [0] if part == "draft decode" else list(w.ranks)
    name = texts.capture_name(part, speculative=bool(w.setting.draft))
    w.t += 0.3
    begun = w.t
    for rank in speaking:
        text = f"Capture {name} CUDA graph begin. {about}, avail mem={w.avail()} GB"
        w.say(text, rank, after=w.late(rank) * 0.06)
    w.show("compiling" if part == "prefill" and w.course.compilers else "capturing")
    w.t += 0.5
    before = w.mib
    _bar(w, part, times)
    w.mib = before + GRAPHS_MIB[part]
    w.t += 0.5
    for rank in speaking:
        at = w.t + w.late(rank) * 0.02
        w.acts.append(Say(at, texts.capture_end(name, at - begun, GRAPHS_MIB[part], w), rank))
    w.show("capturing")


def _bar(w: Writer, part: Part, times: Sequence[float]) -> None:
    shapes = PREFILL_SHAPES if "prefill" in part else DECODE_SHAPES
    noun = "num tokens (num_tokens" if "prefill" in part else "batches (bs"
    labels = [
        f"Capturing {noun}={shape} avail_mem={w.avail(captured(part, n, len(shapes)))} GB)"
        for n, shape in enumerate(reversed(shapes))
    ]
    ends, t = [], 0.0
    for n, seconds in enumerate(times):
        t += seconds * (1.0 if n == 0 else 0.75 + 0.5 * (n * 3 % 7) / 6)
        ends.append(t)
    if part == "prefill" and w.course.compilers:
        w.do("compile", after=1.0)
        w.do("compiled", after=ends[0] - 1.5)
    elif part != "prefill" and len(w.ranks) > 1:
        # A record of another rank is glued to the open bar.
        w.say(f"multimem all-gather disabled (no multicast for world_size={w.setting.tp})", 1, after=0.01)
    updates = bars.captures(labels, ends)
    before = w.mib
    w.show("capturing", before + captured(part, 1, len(shapes)), after=ends[0])
    halt, crash = w.course.halt, w.course.crash
    if halt and halt.part == part:
        w.bar(updates, until=ends[halt.shape - 1])
        w.t += ends[halt.shape - 1] + 0.4
        w.show("waiting", before + captured(part, halt.shape, len(shapes)), odd=(halt.guilty, "guilty"))
        raise TheEnd
    if crash and crash.part == part:
        w.bar(updates, until=ends[crash.shape - 1])
        w.t += ends[crash.shape - 1] + 1.2
        w.show("capturing", USABLE_MIB - int(LEFT_MIB))
        w.crash(texts.out_of_memory(crash.rank), [crash.rank])
    w.bar(updates)
    w.t += ends[-1]
