"""The chart of a report as inline SVG: steps, states of the servers and memory of each card on one time axis.

Colours come from the page's style sheet by class, so that they follow light and dark; every mark also has
words (a label, or a tooltip), so that no colour is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from specdash.reports.model import Report, Stretch, stretches
from specdash.runbooks.samples import Sample
from specdash.runbooks.steps import Step

WIDTH, LEFT, RIGHT = 960, 180, 72
ROW, GAP, BAR = 30, 8, 18
CHAR = 6.4
"""Width of a character of a label, about."""
TICKS = 6
_NICE = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class Axis:
    """From a moment to a place."""

    begin: float
    end: float

    def x(self, at: float) -> float:
        """Where that moment is."""
        share = (min(max(at, self.begin), self.end) - self.begin) / max(1e-9, self.end - self.begin)
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def chart(report: Report) -> str:
    """The whole chart; empty where nothing has a time."""
    steps = [step for step in report.steps if step.started is not None]
    moments = [s.at for s in report.samples] + [t for s in steps for t in (s.started, s.ended) if t]
    moments += [at for at in (report.began, report.ended) if at is not None]
    if len(moments) < 2 or max(moments) - min(moments) < 0.5:
        return ""
    axis = Axis(min(moments), max(moments))
    rows: list[str] = []
    y = 6
    if report.steps and any(step.ended is not None for step in steps):
        rows.append(_steps(report.steps, axis, y))
        y += ROW + GAP
    found = stretches(report.samples)
    for server in dict.fromkeys(stretch.server for stretch in found):
        rows.append(_states(server, [s for s in found if s.server == server], axis, y))
        y += ROW + GAP
    cards = max((len(sample.used_mib) for sample in report.samples), default=0)
    for card in range(cards):
        rows.append(_card(card, report.samples, axis, y))
        y += ROW + (0 if card < cards - 1 else GAP)
    if not rows:
        return ""
    label = escape(f"{report.title}: steps, states and GPU memory over time", quote=True)
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {y + 22}" role="img" aria-label="{label}">'
    return "\n".join([head, *_axis(axis, y), *rows, "</svg>"])


def _axis(axis: Axis, y: int) -> Iterator[str]:
    span = axis.end - axis.begin
    every = next((step for step in _NICE if span / step <= TICKS), span / TICKS)
    offset = time.localtime(axis.begin).tm_gmtoff or 0
    at = (int(axis.begin + offset) // every + 1) * every - offset
    form = "%H:%M:%S" if every < 60 else "%H:%M" if span < 2 * 86_400 else "%d %H:%M"
    while at < axis.end:
        x = axis.x(at)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{y}"/>'
        words = time.strftime(form, time.localtime(at))
        yield f'<text class="tick" x="{x:.1f}" y="{y + 15}" text-anchor="middle">{words}</text>'
        at += every


def _label(words: str, y: int) -> str:
    room = int((LEFT - 12) / CHAR)
    short = words if len(words) <= room else f"{words[: room - 1]}…"
    return f'<text class="label" x="{LEFT - 10}" y="{y + 13}" text-anchor="end">{escape(short)}</text>'


def _bar(x: float, width: float, y: int, kind: str, words: str, tip: str) -> str:
    """A bar with words in it where they have room, and in its tooltip in any case."""
    out = (
        f'<g><title>{escape(tip)}</title><rect class="{kind}" x="{x:.1f}" y="{y}"'
        f' width="{max(1.5, width):.1f}" height="{BAR}" rx="2"/>'
    )
    if words and width >= len(words) * CHAR + 6:
        middle = f'x="{x + width / 2:.1f}" y="{y + 13}" text-anchor="middle"'
        out += f'<text class="in" {middle}>{escape(words)}</text>'
    return f"{out}</g>"


def _steps(steps: Sequence[Step], axis: Axis, y: int) -> str:
    parts = [_label("steps", y)]
    for number, step in enumerate(steps, 1):
        if step.started is None:
            continue
        x = axis.x(step.started)
        width = axis.x(step.ended if step.ended is not None else axis.end) - x
        tip = f"{number} {step.title}: {step.state}"
        parts.append(_bar(x, width, y, f"step {step.state}", str(number), tip))
    return "".join(parts)


def _states(server: str, mine: Sequence[Stretch], axis: Axis, y: int) -> str:
    parts = [_label(server, y)]
    for stretch in mine:
        x = axis.x(stretch.begin)
        tip = f"{server}: {stretch.words}, {_clock(stretch.begin)} to {_clock(stretch.end)}"
        parts.append(_bar(x, axis.x(stretch.end) - x, y, f"state {stretch.state}", stretch.words, tip))
    return "".join(parts)


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _card(card: int, samples: Sequence[Sample], axis: Axis, y: int) -> str:
    """Memory of one card as a stepped area: it stays what it was until it is seen to be otherwise."""
    points = [(s.at, s.used_mib[card]) for s in samples if card < len(s.used_mib)]
    total = next((s.total_mib[card] for s in samples if card < len(s.total_mib) and s.total_mib[card]), None)
    known = [mib for _, mib in points if mib is not None]
    if not known:
        words = f'<text class="label" x="{LEFT}" y="{y + 13}">not read</text>'
        return _label(f"GPU {card}", y) + words
    top = float(total or max(known) or 1)
    height, base = ROW - 6, y + ROW - 6
    shapes = []
    for stretch in _pieces([*points, (axis.end, points[-1][1])]):
        path = f"M{axis.x(stretch[0][0]):.1f},{base}"
        level = float(base)
        for at, mib in stretch:
            x = axis.x(at)
            path += f"L{x:.1f},{level:.1f}"
            level = base - height * min(1.0, mib / top)
            path += f"L{x:.1f},{level:.1f}"
        shapes.append(f'<path class="memory" d="{path}L{axis.x(stretch[-1][0]):.1f},{base}Z"/>')
    last, most = points[-1][1], max(known)
    tip = f"GPU {card}: at most {most / 1024:.1f} GiB of {top / 1024:.0f} GiB"
    end = "?" if last is None else f"{last / 1024:.1f} GiB"
    return (
        f"<g><title>{escape(tip)}</title>{_label(f'GPU {card}', y + 6)}"
        f'<line class="floor" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>{"".join(shapes)}'
        f'<text class="value" x="{WIDTH - RIGHT + 8}" y="{base - 2}">{end}</text></g>'
    )


def _pieces(points: Sequence[tuple[float, int | None]]) -> Iterator[list[tuple[float, int]]]:
    """Stretches in which the value was read: a gap is no zero."""
    piece: list[tuple[float, int]] = []
    for at, mib in points:
        if mib is None:
            if piece:
                yield [*piece, (at, piece[-1][1])]
            piece = []
        else:
            piece.append((at, mib))
    if piece:
        yield piece
