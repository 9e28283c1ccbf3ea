"""How a plan reads: before it runs with every literal line, then as a tracker, afterwards in one line.

Pure. The text of a plan comes from a host: it is painted as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from rich.cells import cell_len, chop_cells

from specdash.operations.plan import Kind, Plan, Step, StepState
from specdash.operations.work import Check, Follow, Free, Start, TakeBack, Write
from specdash.tui import say
from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, Span, Tone, clip, dim, row, spread, width_of, wrap

GLYPHS: Final[dict[StepState, str]] = {
    "pending": "○", "active": "◐", "done": "✓", "failed": "✖", "skipped": "–",
}  # fmt: skip
TONES: Final[dict[StepState, Tone]] = {
    "pending": "dim", "active": "accent", "done": "plain", "failed": "bad", "skipped": "dim",
}  # fmt: skip
KEYS: Final[dict[Kind, str]] = {
    "kill": "server.kill", "clean": "gpu.clean", "launch": "server.restart", "restart": "server.restart",
    "patch": "config.patch", "undo": "config.undo", "bench": "bench.run", "run": "palette",
}  # fmt: skip
"""The action that prepares a plan of this kind."""
_LINE_TONES: Final[dict[str, Tone]] = {"✓": "dim", "▲": "warn", "✖": "bad", "?": "dim"}
_EVIDENCE_ROWS: Final = 4


# ---- before ------------------------------------------------------------------------------------------------


def verb(plan: Plan) -> str:
    """What the plan does, for a title and a button."""
    return "Measure" if plan.kind == "bench" else plan.does.capitalize()


def title(plan: Plan, *, resumes: bool = False) -> str:
    """``Kill sglang:30000 (pid 4242) on gpubox``."""
    words = f"{verb(plan)} {plan.subject} on {plan.where}"
    return f"Go on: {words[0].lower()}{words[1:]}" if resumes else words


def warning_rows(plan: Plan, width: int) -> list[Row]:
    """What the operator should know first."""
    return [line for words in plan.warnings for line in _hanging("▲ ", words, width, "warn")]


def step_rows(plan: Plan, width: int) -> list[Row]:
    """Every step with its literal lines; long ones are broken, nothing is left out."""
    out: list[Row] = []
    for number, step in enumerate(plan.steps, 1):
        where = Span("  on the host outside", "warn") if step.place == "outside" else dim("")
        mark = Span(f"{GLYPHS[step.state]} ", TONES[step.state]) if plan.begun else Span("")
        lines = wrap(step.title, width - 5) or [""]
        out.append(row(dim(f"{number:>2} "), mark, Span(lines[0], "strong"), where))
        out += [row("   ", Span(line, "strong")) for line in lines[1:]]
        out += preview_rows(step, width)
    return out


def start_rows(plan: Plan, width: int, room: int) -> list[Row]:
    """The command that a plan starts, where its place in the order is further down than ``room`` rows."""
    at = next((n for n, step in enumerate(plan.steps) if isinstance(step.work, Start)), None)
    if at is None or not plan.steps[at].preview:
        return []
    command = _hanging("   ", plan.steps[at].preview[0], width, "plain")
    above = step_rows(msgspec.structs.replace(plan, steps=plan.steps[:at]), width)
    return [] if len(above) + 1 + len(command) <= room else [row(dim("starts:")), *command]


def preview_rows(step: Step, width: int) -> Iterator[Row]:
    """The literal lines of one step: a diff in its colours, checks by their marks."""
    change = isinstance(step.work, (Write, TakeBack))
    for line in step.notes if step.over and step.notes else step.preview:
        tone: Tone = "plain"
        if change:
            tone = _diff_tone(line)
        elif isinstance(step.work, Check):
            tone = _LINE_TONES.get(line[:1], "plain")
        yield from _hanging("      ", line, width, tone)


def _diff_tone(line: str) -> Tone:
    if line.startswith(("---", "+++")):
        return "strong"
    return {"+": "ready", "-": "bad", "@": "accent"}.get(line[:1], "dim")  # type: ignore[return-value]


def _hanging(lead: str, text: str, width: int, tone: Tone) -> list[Row]:
    """A text with a lead, its further lines set in below it."""
    lines = fold(text, max(10, width - len(lead)))
    first = row(Span(lead, tone), Span(lines[0], tone))
    return [first, *(row(" " * len(lead), Span(line, tone)) for line in lines[1:])]


def fold(text: str, room: int) -> list[str]:
    """A literal text in lines of at most ``room`` cells: broken at a blank where there is one, else anywhere.

    Other blanks stay: what is shown is what will be sent.
    """
    lines = []
    while cell_len(text) > room:
        head = chop_cells(text, room)[0]
        at = head.rfind(" ", 1) if text[len(head)] != " " else len(head)
        cut = at if at > room // 3 else len(head)
        lines.append(text[:cut])
        text = text[cut + 1 :] if text[cut] == " " else text[cut:]
    return [*lines, text]


# ---- while it runs -----------------------------------------------------------------------------------------


def tracker_rows(plan: Plan, width: int, now: float, room: int = 0) -> list[Row]:
    """A line a step, evidence below the one at work and below the one that failed.

    ``now``: seconds since the epoch on this machine's clock. ``room``: rows there are; 0: as many as needed.
    """
    blocks = [_tracked(step, width, now) for step in plan.steps]
    rows = [line for block in blocks for line in block]
    over = next((n for n, step in enumerate(plan.steps) if step.state in ("active", "failed", "pending")), 0)
    if room and len(rows) > room and over > 1:
        left = [line for block in blocks[over:] for line in block]
        rows = [row(dim(f"✓ {over} steps done")), *left]
    return rows[:room] if room and len(rows) > room else rows


def _tracked(step: Step, width: int, now: float) -> list[Row]:
    words: Tone = {"active": "strong", "failed": "bad", "done": "plain"}.get(step.state, "dim")  # type: ignore[assignment]
    time = _time(step, now)
    called = step.title if len(step.title) + 3 + len(time.text) <= width else brief(step.title)
    mark = dim("– ") if step.vain else Span(f"{GLYPHS[step.state]} ", TONES[step.state])
    left = row(mark, Span(called, words))
    out = [spread(left, row(time), width, gap=1)]
    if step.state in ("active", "failed") and step.evidence:
        tone: Tone = "bad" if step.state == "failed" else "dim"
        out += [row("  ", Span(line, tone)) for line in wrap(step.evidence, width - 2, _EVIDENCE_ROWS)]
    return out


def brief(title: str) -> str:
    """A step's title without what is explained in brackets, where there is no room for that."""
    return title.partition(" (")[0]


def _time(step: Step, now: float) -> Span:
    """What is left of a grace; else how long it has taken."""
    if step.state == "active" and step.until is not None:
        return Span(f"{max(0, round(step.until - now))} s left", "warn")
    if step.started is None:
        return dim("")
    return dim(say.clock((step.ended if step.ended is not None else now) - step.started))


def progress_row(plan: Plan, now: float, *, timed: bool = True) -> Row:
    """``◐ kill sglang:30000  3/4  verify that GPU 0–7 are clean``, for one line: as many as are over.

    ``timed``: nothing else on the screen tells how long the step may take yet.
    """
    head = Span(f"◐ {plan.named}", "accent")
    if plan.active is None:
        return row(head, dim(f"  {counted(plan)}"))
    step = plan.steps[plan.active]
    time = row("  ", _time(step, now)) if timed else ()
    return row(head, dim(f"  {counted(plan)}  "), brief(step.title), time)


def counted(plan: Plan) -> str:
    """``3/7``: three of seven are over. Every place on a screen counts so."""
    return f"{sum(step.over for step in plan.steps)}/{len(plan.steps)}"


# ---- afterwards --------------------------------------------------------------------------------------------


def outcome_row(plan: Plan, width: int = 0) -> Row:
    """One line: what came of it, and which key helps. ``width``: the reason gives way, the key does not."""
    failed = plan.failed
    name = plan.named
    if failed is not None:
        tail = key_hint(plan)
        words = f"✖ {name}: {failed.evidence or f'“{failed.title}” failed'}"
        return row(Span(clip(words, width - width_of(tail)) if width else words, "bad"), tail)
    if not plan.ok:
        done = sum(step.state == "done" for step in plan.steps)
        words = f"▲ {name}: stopped after step {done} of {len(plan.steps)}, as you asked"
        return row(Span(words, "warn"), key_hint(plan))
    last = next((step.evidence for step in reversed(plan.steps) if step.state == "done"), "")
    took = [moment for step in plan.steps for moment in (step.started, step.ended) if moment is not None]
    clock = f" in {say.clock(max(took) - min(took))}" if took else ""
    tail = key_hint(plan) or row(dim(f"   {last}" if last else ""))
    room = width - len(f": done{clock}") - (width_of(tail) if helps(plan) else 0)
    words = clip(f"✓ {name}", room) if width else f"✓ {name}"
    return row(Span(f"{words}: done{clock}", "strong"), tail)


def helps(plan: Plan) -> str | None:
    """The action that goes on from here; None where nothing is left to do."""
    failed = plan.failed
    if plan.ok:
        return "server.restart" if plan.kind == "patch" else None
    if failed is None:
        return KEYS[plan.kind]
    if isinstance(failed.work, Free):
        return "gpu.clean"
    if isinstance(failed.work, Follow) and failed.result.get("diagnosis") == "draft_context_mismatch":
        return "config.patch"
    if isinstance(failed.work, Check) and any(
        line.startswith("✖ draft: its context") for line in failed.notes
    ):
        return "config.patch"
    return KEYS[plan.kind]


_HELPS: Final[dict[str, str]] = {
    "gpu.clean": "ends what still holds it",
    "config.patch": "reviews the known fix",
    "server.kill": "prepares it again",
    "server.restart": "prepares it again",
    "config.undo": "prepares it again",
}


def key_hint(plan: Plan) -> Row:
    """``  — C ends what still holds it``."""
    id_ = helps(plan)
    if id_ is None:
        return ()
    words = "prepares it again" if id_ == KEYS[plan.kind] else _HELPS[id_]
    words = "starts the server with it" if plan.ok else words
    return row(dim("  — "), Span(BY_ID[id_].label, "key", id_), Span(f" {words}", "dim", id_))
