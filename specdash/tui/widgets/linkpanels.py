"""What is to be said of the connection: connecting, not reached, refused, lost; and which key is next.

A host that was known before stays on the screen as it was when it was last heard: then a line under the
header tells how old that is. A host that was never reached has the whole screen for its reason.
"""

from __future__ import annotations

import time
from typing import Final

from specdash.monitor.state import HostState
from specdash.tui import say
from specdash.tui.paint import Row, Span, cut, dim, row, width_of
from specdash.tui.widgets.glyphs import key_span
from specdash.tui.widgets.header import host_name
from specdash.tui.widgets.panelrows import Panel, key_rows, text_rows
from specdash.wording import unnamed

_REFUSED: Final = {
    "ssh_host_key_changed": "the host key of {host} is another one than before",
    "ssh_host_key_revoked": "the host key of {host} is revoked",
    "ssh_unknown_host": "{host} is not known, and was not trusted",
    "ssh_host_certificate": "the certificate of {host} is not accepted",
    "ssh_auth": "{host} does not let us in",
    "ssh_auth_agent": "{host} does not let us in",
    "ssh_2fa": "{host} asks for a second proof again",
    "ssh_login_timeout": "the login took too long",
    "ssh_not_ssh": "what answers there is no sshd",
    "ssh_config_divergence": "the ssh configuration cannot be used",
    "ssh_no_python": "{host} has no Python",
}
_UNREACHED: Final = {
    "ssh_no_address": "there is no address for {host}",
    "ssh_port_refused": "{host} refuses the connection",
    "ssh_jump_forward": "the jump host does not lead to {host}",
    "ssh_max_startups": "{host} hangs up at once",
    "ssh_proxy_command": "the ProxyCommand to {host} ends",
}
UNSENT: Final = frozenset({"ssh_host_key_changed", "ssh_host_key_revoked", "ssh_unknown_host"})
"""Reasons that are found before the login begins."""


def link_panel(state: HostState) -> Panel | None:
    """What the connection has to say, or None where the host itself has the word."""
    if state.link.state == "refused":
        return refused(state)
    if state.host is None:
        return unreached(state) if state.link.state == "lost" else connecting(state)
    return None


def connecting(state: HostState) -> Panel:
    """The first seconds; where they become many, how far it is."""
    since = state.link.since
    tried_s = state.now - since if since is not None else 0.0

    def rows(width: int) -> list[Row]:
        out = text_rows("Keys, agent and jump hosts come from your ssh configuration, as with ssh.", width)
        out += text_rows(
            "A small Python program is sent through the connection; nothing is written to the host.", width
        )
        if state.link.reason:
            out += [(), *text_rows(state.link.reason, width, "strong")]
        return [*out, (), *key_rows(("quit", "gives up"))]

    long = dim(f" · {say.age(tried_s)}") if tried_s >= 2 else ()
    return Panel(row(Span(f"connecting to {state.target}", "strong"), long), rows, whole=True)


def refused(state: HostState) -> Panel:
    """The host or we said no: trying again by itself would not help."""
    known = state.host is not None

    def rows(width: int) -> list[Row]:
        out = _reason_rows(state, width, "no reason was given")
        if state.link.key in UNSENT:
            out += text_rows("Nothing was sent to it: no name, no key, no password.", width)
        if known:
            out += text_rows("It is not tried again by itself; what is below is old.", width, "dim")
        return [*out, (), *key_rows(("conn.retry", "tries again"), ("quit", "quits; no server is touched"))]

    title = _REFUSED.get(state.link.key or "", "no connection to {host}")
    words = row(Span(f"✖ {title.format(host=host_name(state))}", "bad"))
    return Panel(words, rows, whole=not known, keys=("conn.retry",))


def unreached(state: HostState) -> Panel:
    """It never answered; we go on trying."""

    def rows(width: int) -> list[Row]:
        out = _reason_rows(state, width, "no answer")
        out += [(), row(dim(retry_text(state)))]
        return [*out, (), *key_rows(("conn.retry", "tries now"), ("quit", "gives up"))]

    title = _UNREACHED.get(state.link.key or "", "{host} cannot be reached")
    words = row(Span(f"▲ {title.format(host=host_name(state))}", "warn"))
    return Panel(words, rows, whole=True, keys=("conn.retry",))


def _reason_rows(state: HostState, width: int, without: str) -> list[Row]:
    """Why, and what can be done about it; without the name that stands above."""
    reason = unnamed(state.target, state.link.sentence or without)
    out = text_rows(reason, width, "strong")
    if state.link.hint:
        lines = text_rows(state.link.hint, max(10, width - 2))
        out += [row(dim("→ " if at == 0 else "  "), line) for at, line in enumerate(lines)]
    return out


def retry_text(state: HostState) -> str:
    """``try 4 in 8 s``, or ``try 4 is under way``."""
    link = state.link
    if link.retry_at is None:
        return f"try {max(1, link.attempt)} is under way"
    return f"try {link.attempt + 1} in {say.age(max(0.0, link.retry_at - state.now))}"


def lost_row(state: HostState, width: int) -> Row:
    """The banner of a lost link; the reason and the warning as far as they fit."""
    link = state.link
    ago = f"{say.age(state.now - link.since)} ago" if link.since is not None else ""
    lost = Span(f" ▌ connection lost {ago}", "warn")
    reason = unnamed(state.target, link.sentence or "")
    why = Span(f": {reason}" if reason else "", "warn")
    hand = (Span("   "), key_span("conn.retry"), Span(" now", "dim", "conn.retry"))
    again = row(Span(f" — {retry_text(state)}", "warn"), *(() if link.trying else hand))
    forms = (row(lost, why, again, dim("   what is below is old")), row(lost, why, again), row(lost, again))
    return next((form for form in forms if width_of(form) <= width), forms[-1])


def over_row(state: HostState, width: int) -> Row:
    """The banner where nothing more will come."""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.now))
    told = row(Span(f" ▌ {state.over}", "strong"), dim(f", {at} on the host's clock   "))
    return cut(row(told, key_span("quit"), Span(" quits", "dim", "quit")), width)
