"""What is going on where the usual panes have nothing to say, and which key is next.

One function a situation; :func:`panel_for` chooses. Each says what was seen, in plain words, and never names
a key that does nothing.
"""

from __future__ import annotations

from specdash.monitor.alerts import KNOWN_FIXES, UNSEEN, about, unexplained
from specdash.monitor.documents import Diagnosis, Reason
from specdash.monitor.glyphs import state_name
from specdash.monitor.importance import successor
from specdash.monitor.liveness import is_stopped
from specdash.monitor.signs import folded, in_words, until_stalled
from specdash.monitor.speech import ANY_TARGET
from specdash.monitor.state import HostState, Server
from specdash.operations.offer import AS, Known
from specdash.tui import say
from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, Span, dim, pad, row, wrap
from specdash.tui.widgets.glyphs import evidence_mark, key_span
from specdash.tui.widgets.logblock import Lines, block_rows
from specdash.tui.widgets.noserver import SOON_S, no_server
from specdash.tui.widgets.panelrows import Panel, key_rows, text_rows

BLOCK, SHORT_BLOCK = 6, 1
"""Lines of the log around a root cause; on a narrow screen, which is short as well, none but it."""
ROOMY = 90
"""Cells from which a panel has room for more."""

LEFT_BEHIND = "orphan_processes"
"""The diagnosis that says what an end has left, never why it came."""
NOT_SEEN = (
    "Its command line was not seen: a profile can start it, or `specdash init` while it runs writes one."
)
SUCCESSOR = "A new server of this port takes this view."
KEPT = "This view stays. Once its end is acknowledged, a new server of this port takes it."
"""What :mod:`specdash.tui.staying` decides. How soon a process is seen: seconds, or as --interval says."""
COMMANDS = {"clean": "gpu.clean", "kill": "server.kill", "restart": "server.restart"}
"""Commands in remedies, and the actions that are the same here."""


def panel_for(
    state: HostState,
    server: Server | None,
    *,
    acts: bool = False,
    starts: Known | None = "seen",
    log: Lines | None = None,
    at_work: bool = False,
) -> Panel | None:
    """What is to be said now, or None where the usual panes say it all. ``acts``: acting keys exist here.

    ``starts``: why it is known how the server is started, so that it can be started again. ``at_work``: a
    plan ends it or starts it at this moment, and no key is advised that would do the same.

    The host is known: what the connection has to say stands in :mod:`specdash.tui.widgets.linkpanels`.
    """
    if server is None:
        return no_server(state, acts=acts, starts=starts)
    acts = acts and not at_work
    if server.stopping:
        return stopping(server, acts=acts)
    if server.state == "stalled":
        return stalled(state, server, acts=acts, at_work=at_work)
    if server.state in ("crashed", "stopped"):
        return ended(state, server, acts=acts, starts=starts, log=log)
    if server.state == "degraded":
        return degraded(server)
    if server.verdict.word == "suspect":
        return suspect(server)
    met_s = state.now - state.link.since if state.link.since is not None else 0.0
    return unknown(server) if server.state == "unknown" and met_s >= SOON_S else None


def _reason_rows(reasons: tuple[Reason, ...], width: int) -> list[Row]:
    reasons = folded(reasons)
    names = max((len(reason.signal) for reason in reasons), default=0)
    out: list[Row] = []
    for reason in reasons:
        lines = wrap(in_words(reason), max(10, width - names - 5), 2) or [""]
        mark, tone = evidence_mark(reason)
        out.append(row(Span(f"{mark} ", tone), dim(pad(reason.signal, names)), "   ", Span(lines[0], tone)))
        out += [row(" " * (names + 5), Span(line, tone)) for line in lines[1:]]
    return out


def _root(server: Server) -> Diagnosis | None:
    return next((diagnosis for diagnosis in server.diagnoses if diagnosis.root), None)


def by_key(remedy: str) -> str:
    """A remedy that names a command names the key here."""
    for command, id_ in COMMANDS.items():
        remedy = remedy.replace(f"specdash {command} {ANY_TARGET}", BY_ID[id_].label)
    return remedy


def _remedy_rows(diagnosis: Diagnosis, width: int) -> list[Row]:
    out: list[Row] = []
    for remedy in diagnosis.remedy:
        lines = wrap(by_key(remedy), width - 2, 3)
        out += [row(dim("→ " if at == 0 else "  "), line) for at, line in enumerate(lines)]
    return out


def stopping(server: Server, *, acts: bool = False) -> Panel:
    """Asked to end, and still there: what it holds it holds."""
    hand = key_rows(("server.kill", "ends it, if it does not go by itself")) if acts else []

    def rows(width: int) -> list[Row]:
        left = say.plural(server.processes, "process of it is", "processes of it are")
        words = f"It was asked to end; {left} still there."
        return [*text_rows(words, width), *hand]

    return Panel(row(Span(f"◐ {server.name} is stopping", "strong")), rows)


def stalled(state: HostState, server: Server, *, acts: bool = False, at_work: bool = False) -> Panel:
    """The evidence behind the word. ``at_work``: it is being ended, and what is seen of it goes with it."""
    root = _root(server)
    kills = "stops it, then verifies that every GPU is free" if state.gpus else "stops it"

    def rows(width: int) -> list[Row]:
        out = _reason_rows(server.verdict.reasons, width)
        if root is not None:
            advice = [] if at_work else _remedy_rows(root, width)
            out += [(), *text_rows(root.summary, width, "strong", 2), *advice]
        hand = key_rows(("server.kill", kills)) if acts else []
        return [*out, *hand]

    why = "it was called stalled, and is being ended" if at_work else "why it is called stalled"
    title = row(Span(f"✖ {why}", "bad"), dim(f"   {root.key}" if root else ""))
    keys = (*(("server.kill",) if acts else ()), "alert.ack", "evidence", "log.error", "log.gap")
    below = row(dim("evidence is live · "), key_span("evidence"), dim(" keeps it in a file"))
    return Panel(title, rows, below, keys=keys)


def suspect(server: Server) -> Panel:
    """Longer quiet than usual, and not yet a stall."""
    stopped = any(map(is_stopped, server.verdict.reasons))
    what = "a process of it is stopped" if stopped else "quiet for longer than usual"
    return Panel(
        row(Span(f"▲ {what}", "warn")),
        lambda width: _reason_rows(server.verdict.reasons, width),
        row(dim(until_stalled(server.verdict))),
    )


def unknown(server: Server) -> Panel:
    """What it does cannot be said."""
    return Panel(
        row(Span("? why its state is not known", "strong")),
        lambda width: _reason_rows(server.verdict.reasons, width),
    )


def degraded(server: Server) -> Panel:
    """It serves, and something is wrong."""
    root = _root(server)

    def rows(width: int) -> list[Row]:
        if root is None:
            return _reason_rows(server.verdict.reasons, width)
        out = text_rows(root.summary, width, "plain", 2)
        out += text_rows(root.evidence, width, "dim", 2)
        return [*out, *_remedy_rows(root, width)]

    title = row(Span("▲ it serves, but", "warn"), dim(f"   {root.key}" if root else ""))
    return Panel(title, rows, keys=("alert.ack",))


def _hands(
    state: HostState, server: Server, root: Diagnosis | None, *, starts: Known | None
) -> list[tuple[str, str]]:
    """Which acting keys go on from an ended server, most needed first."""
    out = []
    if root is not None and root.key in KNOWN_FIXES:
        out.append(("config.patch", "reviews the known fix, as a diff"))
    left = root is not None and root.key == LEFT_BEHIND
    if left or any(gpu.orphan_mib for gpu in state.gpus):
        out.append(("gpu.clean", "ends what still holds GPU memory"))
    elif server.gone_at is not None and server.processes:
        out.append(("server.kill", "ends what it left behind"))
    return [*out, ("server.restart", f"starts it again {AS[starts]}")] if starts else out


def _where(server: Server, root: Diagnosis, victims: int, log: Lines | None) -> list[Row]:
    """``TP0 · line 13 of server.log · 2 later errors are its victims``."""
    path = (server.log.path or "").rpartition("/")[2] if server.log else ""
    line = ""
    if root.line:
        number = log.numbers(root.line, root.line) if log is not None else None
        line = f"line {number.first if number else root.line:,}{f' of {path}' if path else ''}"
        line += "" if number is None or number.newest else " before it was rotated"
    told = say.plural(victims, "later error is its victim", "later errors are its victims")
    parts = [part for part in (root.rank, line, told if victims else "") if part]
    return [row(dim(" · ".join(parts)))] if parts else []


def _no_cause(state: HostState, server: Server) -> str:
    """That its log tells no cause; one that leaves none is SIGKILL, by hand or by the kernel's OOM killer."""
    said, log = "The log names no cause that is known here.", server.log
    if server.gone_at is None or log is None or log.path is None or log.error or not server.log_lines:
        return said
    if state.by_shell:
        kernel = "without Python the kernel's log is not read, which would name the OOM killer"
    elif state.kernel_denied is not None:
        kernel = f"the kernel's log, which would name the OOM killer, cannot be read ({state.kernel_denied})"
    else:
        kernel = "what is kept of the kernel's log names no OOM kill of it"
    return f"{said} SIGKILL leaves none; {kernel}."


def ended(
    state: HostState,
    server: Server,
    *,
    acts: bool = False,
    starts: Known | None = "seen",
    log: Lines | None = None,
) -> Panel:
    """Crashed or stopped: the root cause, whose fault, what to do."""
    root = _root(server)
    left = root is not None and root.key == LEFT_BEHIND
    crashed = server.state == "crashed"
    heir = successor(server, state.servers)
    hands = _hands(state, server, root, starts=None if heir else starts) if acts else []
    open_end = any(alert.alarm and about(alert.key) == server.key for alert in state.alerts)
    victims = sum(not diagnosis.root and diagnosis.severity != "info" for diagnosis in server.diagnoses)
    victims += sum(diagnosis.key == "peer_died_first" for diagnosis in server.diagnoses if not diagnosis.root)

    def rows(width: int) -> list[Row]:
        out: list[Row] = []
        if root is not None:
            out += text_rows(root.summary, width, "strong", 2)
            shown = block_rows(log, root.line, width, BLOCK if width >= ROOMY else SHORT_BLOCK)
            out += shown or text_rows(root.evidence, width, "plain", 3)
            out += _where(server, root, victims, log)
            out += [*([()] if width >= ROOMY else []), *_remedy_rows(root, width)] if root.remedy else []
        if crashed and (root is None or left):
            out += text_rows(_no_cause(state, server), width, "dim" if left else "plain")
        if crashed and root is None:
            # That it is gone without a reason, the title says.
            signs = tuple(one for one in server.verdict.reasons if not one.value.endswith(UNSEEN))
            out += _reason_rows(signs, width)
        held = sum(gpu.orphan_mib or 0 for gpu in state.gpus)
        if held:
            out += text_rows(
                f"{say.gib(held)} GiB of GPU memory are still held by what is left of it.", width, "orphan"
            )
        out += key_rows(*hands)
        if heir is not None:
            told = f"It was started again: {heir.name}, pid {heir.pid}, is {state_name(heir)}."
            out += text_rows(told, width)
        elif acts and starts and root is not None and any("--" in remedy for remedy in root.remedy):
            other = f"Other flags: `specdash restart {state.typed} --variant NAME`, a variant of the profile."
            out += text_rows(other, width, "dim")
        elif acts and not starts:
            out += text_rows(NOT_SEEN, width, "dim")
        return [*out, *text_rows(KEPT if open_end else SUCCESSOR, width, "dim")]

    keys = tuple(id_ for id_, _ in hands)
    if unexplained(server):
        title = row(Span("▲ it is gone, the reason was not seen", "warn"))
        return Panel(title, rows, keys=(*keys, "log.error", "alert.ack", "evidence"))
    if crashed:
        words = "what was left behind" if left else "why it crashed"
        title = row(Span(f"✖ {words}", "bad"), dim(f"   {root.key}" if root else ""))
        return Panel(title, rows, keys=(*keys, "log.error", "alert.ack", "evidence"))
    return Panel(row(Span(f"■ {server.name} was stopped", "strong")), rows, keys=(*keys, "log.error"))
