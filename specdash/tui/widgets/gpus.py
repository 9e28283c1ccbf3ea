"""The cards of a host: a box each on a large screen, else a line each, else alike ones on one line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

import msgspec
from textual.geometry import Size

from specdash.monitor.state import Gpu, HostState, Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, fill, row
from specdash.tui.widgets.glyphs import key_span
from specdash.tui.widgets.gpuboxes import box_rows, rows_needed
from specdash.tui.widgets.gpulines import (
    TWO_COLUMNS_ABOVE,
    behind,
    card_row,
    column_titles,
    half_row,
    last_known_s,
    remarks,
    short_name,
    span_of,
    summary_rows,
    two_columns,
)
from specdash.tui.widgets.painted import Choosing, clickable

APART_MIB = 103
"""From here on, a tenth of a GiB, it is told how far the cards of a server differ."""
BOXES_FROM = Size(160, 45)
"""A screen of that size shows a box per card."""
BOX_SHARE = 0.4
"""Of its rows the boxes take so much at most."""


def boxes_fit(many: int, screen: Size) -> bool:
    """So many cards have a box each on such a screen, and enough is left for the log."""
    large = screen.width >= BOXES_FROM.width and screen.height >= BOXES_FROM.height
    return large and 0 < rows_needed(many, screen.width) <= screen.height * BOX_SHARE


class GpuPane(Choosing, can_focus=True):
    """All cards of the host."""

    state: HostState | None = None
    server: Server | None = None
    summary = False
    slim = False
    short = False
    most = 0
    boxes = False

    def look(
        self,
        state: HostState,
        server: Server | None,
        *,
        summary: bool,
        slim: bool = False,
        short: bool,
        most: int = 0,
    ) -> None:
        """Show another picture.

        ``summary``: alike cards on one line. ``slim``: one line for all, without a frame. ``short``: few
        rows, no titles. ``most``: so many rows at most. A large screen has a box per card.
        """
        self.slim, self.can_focus = slim, not slim
        self.set_class(slim, "-slim")
        if slim and self.has_focus:
            self.blur()
        self.state, self.server, self.summary, self.short, self.most = state, server, summary, short, most
        self.boxes = not summary and boxes_fit(len(state.gpus), self.app.size)
        self.set_class(self.boxes, "-boxes")
        self.faded = last_known_s(state) is not None
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """The cards, or why there are none."""
        state = self.state
        if state is None:
            return []
        if not state.gpus:
            return [row(Span(state.gpu_error or "no card seen yet", "warn" if state.gpu_error else "dim"))]
        lagging = self.server.lagging if self.server else ()
        if self.slim:
            return [slim_row(self._as_new(state), state.now, width, lagging, last_known_s(state))]
        error = [row(Span(state.gpu_error, "warn"))] if state.gpu_error else []
        rows = error + self._cards(state, width, lagging)
        if self.most and len(rows) > self.most:
            hidden = len(rows) - self.most + 1
            rows = [
                *rows[: self.most - 1],
                row(dim(f"… {hidden} more lines: "), key_span("pane.gpu")),
            ]
        return rows

    def _as_new(self, state: HostState) -> list[Gpu]:
        """The cards; how old all of them are is said once, and of one only where the others are newer."""
        new = partial(msgspec.structs.replace, at=state.now)
        return [gpu if behind(state, gpu) else new(gpu) for gpu in state.gpus]

    def _cards(self, state: HostState, width: int, lagging: Sequence[str]) -> list[Row]:
        gpus = self._as_new(state)
        if self.summary:
            return summary_rows(gpus, state.now, width, lagging, self.marked)
        if self.boxes:
            return box_rows(gpus, state.now, width, lagging, self.marked, last_known_s(state))
        if len(state.gpus) > TWO_COLUMNS_ABOVE and self.short:
            half = (width - 2) // 2
            halves = [half_row(gpu, state.now, half, lagging) for gpu in gpus]
            return two_columns([self._one(cells, at) for at, cells in enumerate(halves)], width)
        rows = [card_row(gpu, state.now, width, lagging) for gpu in gpus]
        rows = [self._one(cells, at) for at, cells in enumerate(rows)]
        return rows if self.short else [column_titles(width), *rows]

    def _one(self, cells: Row, at: int) -> Row:
        return clickable(cells, f"detail('gpu', {at})", marked=at == self.marked)

    @property
    def many(self) -> int:
        """The cards."""
        return len(self.state.gpus) if self.state else 0

    def heading(self, width: int) -> tuple[Row, Row]:
        """How many of what; the sum, and how far the cards differ."""
        state = self.state
        gpus = state.gpus if state else ()
        if self.boxes or self.slim:
            return (), ()
        if state is None or not gpus:
            return row(Span("GPUs", "strong")), ()
        names = [name for name, _ in groupby(short_name(gpu.card.name) for gpu in gpus)]
        title = row(
            Span("GPUs", "strong"),
            dim(f"  {len(gpus)} × {names[0]}" if len(names) == 1 else f"  {len(gpus)}"),
        )
        if state.by_shell:
            title = row(title, Span("  no Python here: nvidia-smi every 5 s", "warn"))
        used = [gpu.card.used_mib for gpu in gpus if gpu.card.used_mib is not None]
        total = [gpu.card.total_mib for gpu in gpus if gpu.card.total_mib is not None]
        orphan = sum(gpu.orphan_mib or 0 for gpu in gpus)
        below = [dim(f"Σ {say.gib(sum(used), digits=0)} / {say.gib(sum(total), digits=0)} GiB")]
        if (apart := _apart_mib(gpus)) >= APART_MIB and not orphan:
            below.append(dim(f" · spread {say.gib(apart)}"))
        if (old_s := last_known_s(state)) is not None:
            below.insert(0, Span(f"last known, {say.age(old_s)} old · ", "warn"))
        if orphan:
            below.append(Span(f" · {say.gib(orphan)} GiB orphaned", "orphan"))
        return title, row(*below)


def slim_row(
    gpus: Sequence[Gpu], now: float, width: int, lagging: Sequence[str], old_s: float | None = None
) -> Row:
    """All cards on one line, and the odd one: ``GPUs 0-7   76.0 of 95.6 GiB   0-100%   GPU 3 ◀ lags``.

    ``old_s``: how old the newest sample is, where no newer one comes.
    """
    cards = [gpu.card for gpu in gpus]
    used = [say.gib(card.used_mib) for card in sorted(cards, key=lambda card: card.used_mib or 0)]
    memory = used[0] if used[0] == used[-1] else f"{used[0]}-{used[-1]}"
    odd = [(gpu, words[0]) for gpu in gpus if (words := remarks(gpu, now, lagging))]
    told = row(dim(f"GPU {odd[0][0].card.index} "), odd[0][1]) if odd else ()
    more = dim(f" +{len(odd) - 1}" if len(odd) > 1 else "")
    parts = [
        row(dim(f"GPU{'s' if len(cards) > 1 else ''} "), span_of([card.index for card in cards], "")),
        row(f"{memory} of {say.gib(cards[0].total_mib)} GiB"),
        row(span_of([card.util for card in cards], "%")),
        row(told, more),
        row(Span(f"readings {say.age(old_s)} old", "warn")) if old_s is not None else (),
        row(span_of([card.power_w for card in cards], " W")),
        row(span_of([card.temp_c for card in cards], "°")),
    ]
    return clickable(fill(parts, width), "pane.gpu")


def _apart_mib(gpus: Sequence[Gpu]) -> int:
    """How much more the fullest card of a server has in use than its emptiest one."""
    used: dict[str, list[int]] = {}
    for gpu in gpus:
        for server in {owner.server for owner in gpu.owners if owner.server is not None}:
            used.setdefault(server, []).append(gpu.card.used_mib or 0)
    return max((max(cards) - min(cards) for cards in used.values()), default=0)
