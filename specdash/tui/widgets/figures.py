"""What the server does right now: tokens a second, requests, cache, acceptance."""

from __future__ import annotations

from statistics import median

from specdash.monitor.latency import WINDOW_S
from specdash.monitor.serverparts import Figures, Latency
from specdash.monitor.state import HostState, Server
from specdash.tui import say
from specdash.tui.chart import ceiling, chart, gutter
from specdash.tui.paint import Row, Span, cut, dim, fill, pad, row, spark, spread, width_of
from specdash.tui.widgets.painted import Painted

CHART_ROWS = 3
TALL_CHART_ROWS = 5
LOW = 30
"""A screen of fewer rows has no room for the chart, nor for a row a figure."""
WIDE = 56
"""Cells from which the chart is taller."""
NAME_CELLS = 10
FEW = 10
"""Fewer have no median and no 90th percentile: what is interpolated in a bucket would be made up."""
OLD_S = 15.0
"""Figures older than that are marked."""


def _parts(figures: Figures, now: float | None) -> list[Row]:
    """What is known, for one line; what this server does not tell is left out."""
    out: list[Row] = []
    if figures.running is not None:
        out.append(row(Span(f"{figures.running:,}"), dim(" running")))
    if figures.waiting is not None:
        out.append(row(Span(f"{figures.waiting:,}"), dim(" waiting")))
    if figures.kv_pct is not None:
        out.append(row(dim("KV "), Span(f"{figures.kv_pct:.1f} %")))
    if figures.accept_len is not None:
        out.append(row(dim("accept "), Span(f"{figures.accept_len:.2f}")))
    if figures.ttft is not None:
        out.append(row(dim("TTFT "), _short(figures.ttft, now)))
    elif figures.ttft_ms is not None:
        out.append(row(dim("TTFT mean "), Span(say.number(figures.ttft_ms, "ms", digits=0))))
    if figures.requests is not None:
        out.append(row(Span(f"{figures.requests:,}"), dim(" finished")))
    return out


def _short(told: Latency, now: float | None) -> Row:
    """For one line: of how many where they are few, and how old where no answer has begun for a while."""
    if told.counted < FEW:
        value = row(_few(told), dim(f" of {say.plural(told.counted, 'answer')}"))
    else:
        sign, ms = _bound(told, told.p50_ms, least=told.p50_least)
        value = row(dim("p50 "), Span(sign + say.number(ms, "ms", digits=0)))
    if now is None or now - told.at <= WINDOW_S:
        return value
    return row(value, dim(f", {say.age(now - told.at)} ago"))


def _bound(told: Latency, ms: float, *, least: bool) -> tuple[str, float]:
    """``≥`` where only the least is known of a quantile and ``≤`` where only the most is; and how much."""
    if told.finest_ms is not None and ms <= told.finest_ms:
        return "≤ ", told.finest_ms
    return "≥ " if least else "", ms


def _ms(value: float) -> str:
    """Milliseconds, from ten seconds on seconds."""
    return f"{value / 1000:,.1f} s" if value >= 10_000 else f"{value:,.{0 if value >= 100 else 1}f} ms"


def _rate(figures: Figures) -> Row:
    if figures.tok_s is None:
        return row(dim(f"speed: {figures.missing.get('tok_s', 'this server does not tell')}"))
    return row(Span(f"{figures.tok_s:,.1f}", "strong"), dim(" tok/s"))


def table(server: Server, now: float, width: int) -> list[Row]:
    """One figure a row: its value, or why there is none; of latencies also of how many and how old."""
    figures, missing = server.figures, server.figures.missing

    def line(name: str, value: Row | str | None, field: str) -> Row:
        told = dim(missing.get(field, "not told")) if value is None else value
        return cut(row(dim(pad(name, NAME_CELLS)), told), width)

    kv, accept = figures.kv_pct, figures.accept_len
    spoken = None if accept is None else row(f"{accept:.2f}", dim(" tokens a step"))
    if accept is None and server.speculation is None:
        spoken = row(dim("no speculation"))
    mean = None if figures.ttft_ms is None else row(dim("mean "), _ms(figures.ttft_ms))
    return [
        line("load", _load(figures), "running"),
        line("KV cache", None if kv is None else f"{kv:.1f} %", "kv_pct"),
        line("accept", spoken, "accept_len"),
        line("TTFT", _latency(figures.ttft) or mean, "ttft"),
        *_basis(figures.ttft, "answer", now, width),
        line("ITL", _latency(figures.itl), "itl"),
        *_basis(figures.itl, "token", now, width),
        line("finished", _finished(figures), "requests"),
    ]


def _load(figures: Figures) -> Row | None:
    if figures.running is None:
        return None
    waiting = "?" if figures.waiting is None else f"{figures.waiting:,}"
    return row(f"{figures.running:,}", dim(" running   "), waiting, dim(" waiting"))


def _finished(figures: Figures) -> Row | None:
    """Fewer than have begun, as long as some are at work; one that was aborted never finishes."""
    return None if figures.requests is None else row(f"{figures.requests:,}", dim(" since its start"))


def _latency(told: Latency | None) -> Row | None:
    if told is None:
        return None
    if told.counted < FEW:
        finest = told.most_ms is not None and told.finest_ms is not None and told.most_ms <= told.finest_ms
        return row(_few(told), dim(", no finer is told" if finest else ""))
    shares = ((told.p50_ms, told.p50_least), (told.p90_ms, told.p90_least))
    p50, p90 = (sign + _ms(ms) for sign, ms in (_bound(told, ms, least=least) for ms, least in shares))
    return row(dim("p50 "), p50, dim("   p90 "), p90)


def _few(told: Latency) -> Row:
    """What is certain of a handful, of which no share can be told: ``all ≤ 100 ms``."""
    if told.most_ms is None:
        return row(dim("slowest "), f"≥ {_ms(told.p90_ms)}")
    return row(dim("all " if told.counted > 1 else ""), f"≤ {_ms(told.most_ms)}")


def _basis(told: Latency | None, what: str, now: float, width: int) -> list[Row]:
    """Out of what a latency was made, below it: how many, in which stretch, how long ago; as much as fits."""
    if told is None:
        return []
    ago = "just now" if now - told.at < 1 else f"{say.age(now - told.at)} ago"
    window = "since its start" if told.window_s is None else f"in {say.age(told.window_s)}"
    how = "by the bounds of" if told.counted < FEW else "interpolated from"
    tokens = say.plural(told.counted, what)
    # More have begun than have finished: that word is never left out for want of room.
    many = f"{told.counted:,} begun" if what == "answer" else tokens
    long = f"{f'{tokens} begun' if what == 'answer' else tokens} {window}, {ago}"
    forms = [f"{long}, {how} its histogram", long, f"{many} {window}, {ago}"]
    # Of a figure that is old the age is told before its stretch.
    forms.append(f"{many}, {ago}" if now - told.at > OLD_S else f"{many} {window}")
    text = next((form for form in forms if len(form) + NAME_CELLS <= width), forms[-1])
    return [cut(row(" " * NAME_CELLS, dim(text)), width)]


def pairs(figures: Figures, width: int, now: float | None = None) -> list[Row]:
    """What is known, two a row, for a low screen."""
    parts, half = [cut(part, width // 2) for part in _parts(figures, now)], width // 2
    return [
        row(left, " " * max(1, half - width_of(left)), right)
        for left, right in zip(parts[::2], [*parts[1::2], ()], strict=False)
    ]


def middle(server: Server, now: float) -> Row:
    """``median 59.4 in 2:22``: of the readings that are kept and are not nought."""
    rates, times = [value for value in server.tok_history if value > 0], server.tok_at
    if len(rates) < 2:
        return ()
    since = f" in {say.clock(now - times[0])}" if len(times) == len(server.tok_history) else ""
    return row(dim(f"median {median(rates):,.1f}{since}"))


def speed_chart(server: Server, now: float, width: int) -> list[Row]:
    """Tokens a second over the last readings."""
    history, times = server.tok_history, server.tok_at
    many = min(len(history), 2 * (width - gutter(0.0, ceiling(history))))
    since = f"{say.age(now - times[-many])} ago" if many and len(times) == len(history) else ""
    height = TALL_CHART_ROWS if width >= WIDE else CHART_ROWS
    until = f"{say.age(now - times[-1])} ago" if since and now - times[-1] > OLD_S else "now"
    return chart(history, width, height, unit="tok/s", since=since, until=until)


def one_line(server: Server, width: int, now: float | None = None) -> Row:
    """All of it on one line, for a narrow screen; first of all how old it is, where it is."""
    figures = server.figures
    age_s = now - figures.at if now is not None and figures.at is not None else 0.0
    old = row(Span(f" ▲ {say.age(age_s)} ago ", "warn")) if age_s > OLD_S else row(" ")
    cells = 10 if width >= 90 else 5
    past = Span(spark(server.tok_history, cells, max(server.tok_history, default=0.0) * 1.2), "bar")
    between = "   " if width >= 90 else "  "
    return cut(
        fill([row(old, _rate(figures)), row(past), *_parts(figures, now)], width, between=between), width
    )


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
        """Rate, chart, and one figure a row."""
        if self.server is None:
            return []
        if self.slim:
            return [one_line(self.server, width, self.state.now if self.state else None)]
        figures, history = self.server.figures, [value for value in self.server.tok_history if value > 0]
        now = self.state.now if self.state else 0.0
        rows = [spread(_rate(figures), middle(self.server, now), width)]
        if self.app.size.height < LOW:
            return [*rows, *pairs(figures, width, now)]
        if history:
            rows += speed_chart(self.server, now, width)
        return [*rows, *table(self.server, now, width)]

    def heading(self, width: int) -> tuple[Row, Row]:
        """Where the figures come from and how old they are."""
        if self.server is None or self.state is None or self.slim:
            return (), ()
        figures = self.server.figures
        age = self.state.now - figures.at if figures.at is not None else None
        old = age is not None and age > OLD_S
        words = f"{figures.source or 'figures'} {say.age(age)} ago"
        return row(Span("serving", "strong")), row(Span(f"▲ {words}", "warn") if old else dim(words))
