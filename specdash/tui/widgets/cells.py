"""One cell of the strip: how far the link, a server and the cards of a host are, in a few words."""

from __future__ import annotations

from specdash.monitor.alerts import foremost, wrong
from specdash.monitor.glyphs import SEVERITY_GLYPHS
from specdash.monitor.state import Alert, HostState, Server
from specdash.monitor.words import PHASE_TITLES
from specdash.tui import say
from specdash.tui.paint import Row, Span, cut, dim, row, width_of
from specdash.tui.widgets.glyphs import (
    SEVERITY_TONES,
    link_word,
    state_span,
    state_word,
)
from specdash.tui.widgets.gpulines import remarks, temperature
from specdash.tui.widgets.header import host_name
from specdash.tui.widgets.linkpanels import retry_text


def cell(
    state: HostState,
    server: Server | None,
    width: int,
    *,
    chosen: bool,
    host: bool,
    name: str,
    worst: bool,
    of_host: tuple[Alert, ...] = (),
    of_server: tuple[Alert, ...] = (),
) -> Row:
    """``▸● gpubox ● READY  58°``: the link, the host, the state, what stands open, the worst card.

    ``host``: there are several, so it is named. ``name``: of the server, where it needs one. ``worst``:
    cards are told. ``of_host``, ``of_server``: the alerts that are counted behind each of the two. What does
    not fit any more is left out, least needed first.
    """
    dot, _, tone = link_word(state)
    out = row(Span("▸" if chosen else " ", "accent"))
    if host:
        quiet = tone == "plain"
        label = Span(host_name(state), "strong" if chosen else "plain" if quiet else tone)
        out = row(out, Span(f"{dot} ", "dim" if quiet else tone), label, " ")
        if (told := _alerts(of_host)) and not state.old:  # how old it is needs the room
            out = row(out, told, " ")
    said = [
        row(out, *(part for part in (Span(called, "strong" if chosen else "dim"), " ") if called), now)
        for now in _now(state, server, chosen=chosen)
        for called in dict.fromkeys((name, _port(name)))
    ]
    out = next((form for form in said if width_of(form) <= width), said[-1])
    if worst:
        for forms in ((_alerts(of_server),), (_progress(server),), _worst(state, server)):
            room = width - width_of(out) - 2
            fits = next((form for form in forms if form and width_of(form) <= room), ())
            out = row(out, "  ", fits) if fits else out
    return cut(out, width)


def _port(name: str) -> str:
    """``:30000`` for ``sglang:30000``, where there is no room for all of it."""
    return name[name.find(":") :] if ":" in name else name


def _now(state: HostState, server: Server | None, *, chosen: bool) -> tuple[Row, ...]:
    """The state of a server, or why there is none; and the same in fewer words."""
    if server is not None and state.old:
        heard_at = state.link.heard_at
        seen = f", seen {say.age(state.now - heard_at)} ago" if heard_at is not None else "?"
        return row(dim(f"{state_word(server)}{seen}")), row(dim(f"{state_word(server)}?"))
    if server is not None:
        now = state_span(server)
        now = now if now.tone != "plain" or chosen else dim(now.text)
        return row(now), row(now._replace(text=now.text.partition(" ")[0]))
    if state.host is None or state.old:
        _, words, tone = link_word(state)
        again = row(dim(f" · {retry_text(state)}")) if state.link.state == "lost" else ()
        return row(Span(words, tone), again), row(Span(words, tone))
    return (row(dim("no server" if state.processes_at is not None else "…")),)


def _alerts(alerts: tuple[Alert, ...]) -> Row:
    """Glyph of the gravest of them, and how many there are."""
    first = foremost(alerts)
    if first is None or first.severity == "info":
        return ()
    return row(Span(f"{SEVERITY_GLYPHS[first.severity]}{len(wrong(alerts))}", SEVERITY_TONES[first.severity]))


def _progress(server: Server | None) -> Row:
    """The phase of a start, and how far it is."""
    if server is None or server.gone_at is not None or server.phase in (None, "serving"):
        return ()
    counter = server.progress
    many = f" {counter.done}/{counter.total}" if counter is not None and counter.total else ""
    return row(dim(f"{PHASE_TITLES[server.phase]}{many}" if server.phase else ""))


def _worst(state: HostState, server: Server | None) -> tuple[Row, Row]:
    """The card that is odd, else the hottest; and the same in fewer words."""
    if state.gpu_error and not state.gpus:
        return row(dim("no cards")), ()
    if not state.gpus or state.old:
        return (), ()
    lagging = server.lagging if server is not None and server.state == "stalled" else ()
    told = [(gpu, remarks(gpu, gpu.at, lagging)) for gpu in state.gpus]
    odd = [(gpu, words[0]) for gpu, words in told if words and words[0].tone != "dim"]
    if odd:
        card, first = odd[0]
        more = dim(f" +{len(odd) - 1}" if len(odd) > 1 else "")
        word = "error" if first.tone == "bad" else first.text.removeprefix("◀ ").split()[0].rstrip(":")
        number = dim(f"GPU {card.card.index} ")
        return row(number, first, more), row(number, first._replace(text=word), more)
    hottest = max(state.gpus, key=lambda gpu: gpu.card.temp_c or -1)
    if hottest.card.temp_c is None:
        return (), ()
    heat = temperature(hottest, 0)
    return row(heat if heat.tone == "warn" else dim(heat.text)), ()
