"""One box per card, for large screens: memory by owner, its recent past, work, clock, and what is odd."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.state import Gpu
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, cut, dim, fill, pad, row, spark, spread, width_of, wrap
from specdash.tui.widgets.gpulines import (
    memory_bar,
    number,
    owner_text,
    remarks,
    short_name,
    temperature,
)
from specdash.tui.widgets.painted import clickable

LEAST_CELLS = 20
"""A box narrower than that says nothing whole."""
BOX_ROWS = 8


def per_line(many: int, width: int) -> int:
    """How many boxes stand side by side: all rows but the last are full, and none is much longer."""
    most = max(1, width // LEAST_CELLS)
    lines = -(-many // most)
    return -(-many // lines) if many else 1


def rows_needed(many: int, width: int) -> int:
    """Screen rows that the boxes of so many cards take."""
    return BOX_ROWS * -(-many // per_line(many, width)) if many else 0


def box_rows(
    gpus: Sequence[Gpu],
    now: float,
    width: int,
    lagging: Sequence[str] = (),
    marked: int | None = None,
    old_s: float | None = None,
) -> list[Row]:
    """All boxes in a grid; their edges stand in line, the last one ends at the right edge.

    ``old_s``: all values are so old, and no newer ones come.
    """
    columns = per_line(len(gpus), width)
    edges = [at * width // columns for at in range(columns + 1)]
    out: list[Row] = []
    for first in range(0, len(gpus), columns):
        sizes = [edges[at + 1] - edges[at] for at in range(columns)]
        boxes = [
            [
                clickable(line, f"detail('gpu', {at})")
                for line in _box(gpu, now, sizes[at - first], lagging, at == marked, old_s)
            ]
            for at, gpu in enumerate(gpus[first : first + columns], first)
        ]
        out += [row(*line) for line in zip(*boxes, strict=True)]
    return out


def _box(
    gpu: Gpu, now: float, width: int, lagging: Sequence[str], marked: bool, old_s: float | None
) -> list[Row]:
    odd = remarks(gpu, now, lagging)
    frame: Tone = "accent" if marked else odd[0].tone if odd else "faint"
    if old_s is not None:  # of all of them: no frame stands out for it
        odd = row(Span(f"{say.age(old_s)} old", "warn"), *((dim(" · "), *odd) if odd else ()))
    inside = width - 4
    index = Span(f" {gpu.card.index} ", "flag" if marked else "strong")
    name = dim(f"{' ' if marked else ''}{_named(gpu, width - 4 - len(index.text) - 2)} ")
    whose = dim(f" {owner_text(gpu, pids=True)} ") if gpu.owners else dim("")
    body = [cut(line, inside) for line in _body(gpu, now, inside, odd)]
    return [
        _edge("╭", row(index, name), (), "╮", width, frame),
        *(row(Span("│ ", frame), _padded(line, inside), Span(" │", frame)) for line in body),
        _edge("╰", (), row(whose), "╯", width, frame),
    ]


def _named(gpu: Gpu, room: int) -> str:
    """As many words of its name as fit: the last ones tell least."""
    words = short_name(gpu.card.name).split()
    while len(words) > 1 and len(" ".join(words)) > room:
        words.pop()
    return " ".join(words)


def _edge(begin: str, left: Row, right: Row, end: str, width: int, frame: Tone) -> Row:
    """A horizontal edge with words in it, at either end."""
    left, right = cut(left, width - 4), cut(right, width - 4)
    room = width - 4 - width_of(left) - width_of(right)
    return row(Span(f"{begin}─", frame), left, Span("─" * room, frame), right, Span(f"─{end}", frame))


def _padded(line: Row, width: int) -> Row:
    return row(line, " " * (width - width_of(line)))


def _body(gpu: Gpu, now: float, width: int, odd: Row) -> list[Row]:
    """Six rows."""
    card = gpu.card
    if card.used_mib is None and card.error:
        told = [] if "no answer" in card.error else wrap(f"last answer {say.age(now - gpu.at)} ago", width)
        lines = [row(Span(line, "bad")) for line in wrap(card.error, width)] + [
            row(dim(line)) for line in told
        ]
        return [*lines, *[()] * 6][:6]
    tone: Tone = "orphan" if gpu.orphan_mib else "plain"
    clock = row(number(card.sm_mhz, " MHz", 0), dim(f" of {card.sm_max_mhz}" if card.sm_max_mhz else ""))
    return [
        _memory(gpu, width, tone),
        memory_bar(gpu, width),
        _work(gpu, width),
        clock,
        row(Span(spark(gpu.used_history, width, 1.0), "bar")),
        _state(odd, width),
    ]


def _memory(gpu: Gpu, width: int, tone: Tone) -> Row:
    used, total = gpu.card.used_mib, gpu.card.total_mib
    words = row(Span(f"{say.gib(used)}/{say.gib(total)} GiB", tone))
    share = row(dim(f"{100 * used / total:.0f} %")) if used is not None and total else ()
    return spread(words, share, width) if width_of(words) + width_of(share) < width else words


def _state(odd: Row, width: int) -> Row:
    """What is odd, as far as it fits; the first of it always."""
    words = [span._replace(text=span.text.replace("throttled: ", "↓ ")) for span in odd if span.text != " · "]
    if not words:
        return row(dim("ok"))
    return fill([row(span) for span in words], width, between=" · ") or cut(row(words[0]), width)


def _work(gpu: Gpu, width: int) -> Row:
    """Utilisation, temperature and power, one at the left, one in the middle, one at the right."""
    util, power = number(gpu.card.util, "%", 0), number(gpu.card.power_w, " W", 0)
    middle = temperature(gpu, 0)
    left = max(1, (width - width_of((middle,))) // 2 - width_of((util,)))
    begin = row(util, " " * left, middle)
    return row(begin, pad("", max(1, width - width_of(begin) - width_of((power,)))), power)
