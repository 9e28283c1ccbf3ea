"""The demo's story: which key comes next, told from what is on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from specdash.measuring.course import slug
from specdash.monitor.alerts import foremost
from specdash.monitor.state import HostState, Server
from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, Span, cut, dim, row, width_of
from specdash.tui.widgets.alerts import help_row

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard

_LEAD: Final = Span("▸ ", "accent")


class Scene(NamedTuple):
    """How far the story has come."""

    state: HostState
    server: Server | None
    opening: str
    """What there is to see at first."""
    acted: bool = False
    """A plan has been carried out: this is no longer the first start."""
    measured: frozenset[str] = frozenset()
    """Variants of which a run counts."""
    void: frozenset[str] = frozenset()
    """Variants that were measured, and no run of which counts."""
    variants: tuple[str, ...] = ()
    """Those of the profile that a restart can take."""
    compared: bool = False
    """The comparison was looked at."""
    covered: bool = False
    """Something lies over the dashboard."""


def next_step(scene: Scene) -> Row:
    """The line for the moment; empty where an alarm names the key, or nothing is known yet."""
    server = scene.server
    if scene.state.host is None:
        return ()
    if server is None or server.gone_at is not None:
        return _gone(scene)
    if server.state == "ready":
        return _serving(scene, server)
    if foremost(scene.state.alerts, server.key) is not None:
        return ()
    if server.state in ("stalled", "crashed", "degraded"):
        return _line("server.kill", " ends it, after showing how", "simulated host: ")
    if scene.acted:
        return row(_LEAD, dim("it starts again: a minute at this speed, and nothing to press"))
    return row(dim(scene.opening))


def _gone(scene: Scene) -> Row:
    if any(gpu.orphan_mib for gpu in scene.state.gpus):
        return _line("gpu.clean", " ends what still holds GPU memory")
    return _line("server.restart", " starts it again and asks it for a token: a minute at this speed")


def _serving(scene: Scene, server: Server) -> Row:
    if not server.proven:
        return _line("server.token", " asks for one token: it proves READY")
    here = slug(server.speculation)
    if here in scene.void:
        return _line("bench.run", " measures again: no run counts so far, and says why (4)")
    if here not in scene.measured:
        return _line("bench.run", f" measures {here} (simulated figures)")
    other = next((name for name in scene.variants if name not in scene.measured), None)
    if other is not None:
        return _line("server.restart", f", the button {other}, then Restart: is {other} faster?")
    if len(scene.measured) > 1 and not scene.compared:
        return _line("pane.compare", f" compares {' and '.join(sorted(scene.measured))}")
    if scene.covered:
        return _line("quit", " closes this: look at what differs first")
    return _line("quit", " quits. That was the story; yours: specdash connect root@YOUR-HOST")


def _line(id_: str, words: str, before: str = "") -> Row:
    return row(_LEAD, dim(before), Span(BY_ID[id_].label, "key", id_), Span(words, "dim", id_))


class Story:
    """Stands in the line of the alerts while nothing more urgent does."""

    def __init__(self, opening: str) -> None:
        self._opening = opening
        self._acted = False

    def tell(self, board: Dashboard, told: Row) -> Row:
        """``told``: what the line would say of plans and benchmarks; one that runs or failed goes first."""
        acting = board.acting.here
        plan = acting.shown
        self._acted = self._acted or plan is not None
        if told and (acting.running is not None or plan is None or not plan.ok):
            return told
        if board.measuring.here.under_way:
            nothing = row(_LEAD, dim("it is being measured: nothing to press (simulated figures)"))
            return told if board.zoomed is not None else nothing
        operations = board.source.operations
        scene = Scene(
            state=board.state,
            server=board.server,
            opening=self._opening,
            acted=self._acted,
            measured=board.measuring.measured,
            void=board.measuring.void,
            variants=operations.variants if operations is not None else (),
            compared=board.measuring.compared,
            covered=board.covered,
        )
        return _fitting(next_step(scene), board.size.width - 2) or told


def _fitting(line: Row, width: int) -> Row:
    """With the key to the keys behind it, where there is room."""
    if not line:
        return ()
    helped = row(line, help_row())
    return helped if width_of(helped) <= width else cut(line, width)
