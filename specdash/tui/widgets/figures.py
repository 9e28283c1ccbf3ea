"""What the server does right now: tokens a second, requests, cache, acceptance."""

from __future__ import annotations

from statistics import median

from specdash.monitor.state import Figures, HostState, Server
from specdash.tui import say
from specdash.tui.chart import chart
from specdash.tui.paint import Row, Span, cut, dim, fill, row, spark, spread
from specdash.tui.widgets.painted import Painted

CHART_ROWS = 3


def _parts(figures: Figures) -> list[Row]:
    """What is known, in words; what this server does not tell is left out."""
    out: list[Row] = []
    if figures.running is not None:
        out.append(row(Span(f"{figures.running:,}"), dim(" running")))
    if figures.waiting is not None:
        out.append(row(Span(f"{figures.waiting:,}"), dim(" waiting")))
    if figures.kv_pct is not None:
        out.append(row(dim("KV "), Span(f"{figures.kv_pct:.1f} %")))
    if figures.accept_len is not None:
        out.append(row(dim("accept "), Span(f"{figures.accept_len:.2f}")))
    if figures.ttft_ms is not None:
        out.append(row(dim("TTFT "), Span(f"{figures.ttft_ms:,.0f} ms")))
    if figures.requests is not None:
        out.append(row(Span(f"{figures.requests:,}"), dim(" requests")))
    return out


def _rate(figures: Figures) -> Row:
    if figures.tok_s is None:
        return row(dim("speed: this server does not tell"))
    return row(Span(f"{figures.tok_s:,.1f}", "strong"), dim(" tok/s"))


def one_line(server: Server, width: int) -> Row:
    """All of it on one line, for a narrow screen."""
    figures = server.figures
    past = Span(spark(server.tok_history, 10, max(server.tok_history, default=0.0) * 1.2), "bar")
    return cut(fill([row(" ", _rate(figures)), row(past), *_parts(figures)], width), width)


def serves(server: Server) -> bool:
    """It has reached serving, lives, and tells something."""
    return server.gone_at is None and server.phase == "serving" and server.figures.at is not None


class FiguresPane(Painted, can_focus=True):
    """The figures with a chart; one line on a narrow screen."""

    state: HostState | None = None
    server: Server | None = None
    slim = False

    def look(self, state: HostState, server: Server | None, *, slim: bool) -> None:
        """Show another picture. Nothing is shown before a server serves."""
        self.state, self.server, self.slim = state, server, slim
        self.faded = state.old
        self.set_class(server is None or not serves(server), "-off")
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """Rate, chart, the rest in pairs."""
        if self.server is None:
            return []
        if self.slim:
            return [one_line(self.server, width)]
        figures, history = self.server.figures, [value for value in self.server.tok_history if value > 0]
        middle = row(dim(f"median {median(history):,.1f}")) if len(history) > 1 else ()
        rows = [spread(_rate(figures), middle, width)]
        if figures.tok_s is not None:
            rows += chart(self.server.tok_history, width, CHART_ROWS, unit="tok/s")
        parts, half = _parts(figures), width // 2
        for left, right in zip(parts[::2], [*parts[1::2], ()], strict=False):
            rows.append(row(cut(left, half), " " * max(1, half - sum(len(s.text) for s in left)), right))
        return rows

    def heading(self, width: int) -> tuple[Row, Row]:
        """Where the figures come from and how old they are."""
        if self.server is None or self.state is None or self.slim:
            return (), ()
        figures = self.server.figures
        age = say.age(self.state.now - figures.at) if figures.at is not None else "?"
        return row(Span("serving", "strong")), row(dim(f"{figures.source or 'figures'} {age} ago"))
