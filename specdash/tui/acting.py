"""From a key to a changed host: the plan is prepared, shown, carried out if the operator says so, and told.

A plan belongs to one host; each host has its own. Nothing here knows how a server is stopped or started:
that is what ``Source.operations`` offers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from specdash.errors import SpecdashError
from specdash.monitor.naming import called
from specdash.operations.plan import Plan
from specdash.operations.which import alive
from specdash.tui.paint import Row, Span, dim, row
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog
from specdash.tui.standing import Standing
from specdash.tui.widgets.panelrows import Panel

if TYPE_CHECKING:
    from specdash.monitor.state import Server
    from specdash.operations.offer import Offer
    from specdash.operations.offers import Operations
    from specdash.tui.screens.dashboard import Dashboard
    from specdash.tui.screens.plan import Answer

SOON_S: Final = 0.3
"""A plan that is prepared within this needs no word about it."""
READ_S: Final = 10.0
"""A sentence must be read, not only seen."""
LONG_S: Final = 10.0
"""Whoever waited so long is told by the bell that it is over."""


class Acting:
    """The acting side of a dashboard."""

    def __init__(self, board: Dashboard, *, clock: Callable[[], float] = time.time) -> None:
        self._board = board
        self.clock = clock
        """Seconds since the epoch on this machine: a plan's clock."""
        self._hosts = {id(source): Standing(source) for source in board.sources}
        self._leaving = False
        self._drawn: tuple[object, ...] = ()

    # ------------------------------------------------------------------ what is shown

    @property
    def here(self) -> Standing:
        """The chosen host's."""
        return self._hosts[id(self._board.source)]

    @property
    def plan(self) -> Plan | None:
        """For the step tracker of the chosen host."""
        return self.here.shown

    @property
    def now(self) -> float:
        """The moment at which a plan's times are read."""
        return self.clock()

    def tick(self) -> bool:
        """Four times a second: look for hosts that have just come. True: there is something new to draw."""
        for host in self._hosts.values():
            operations = host.source.operations
            if operations is not None and operations is not host.operations:
                host.operations = operations
                self._work(self._look_back(host, operations))
        second = int(self.now) if self.here.running is not None else 0
        drawn = (second, *((host.shown, host.cut_off) for host in self._hosts.values()))
        changed, self._drawn = drawn != self._drawn, drawn
        return changed

    def panel(self) -> Panel | None:
        """The tracker as a panel, where the steps have no pane of their own."""
        return self.here.panel(self.clock)

    def line(self, width: int) -> Row:
        """For the line of the alerts: what runs, else how the last plan ended; nothing where neither."""
        board = self._board
        steps = board.plan_here is not None or board.has_class("-narrow")
        return self.here.line(self.now, width, tracked=steps and board.zoomed in (None, "side"))

    def keys(self) -> tuple[str, ...]:
        """Ids of the actions that help now, for the footer."""
        return self.here.keys()

    def acknowledge(self) -> bool:
        """The outcome was seen; False where there is none."""
        host = self.here
        if host.running is None and host.ended is not None:
            host.ended = None
            return True
        return False

    # ------------------------------------------------------------------ keys

    def press(self, kind: str, *, variant: str | None = None) -> None:
        """K, C, R, P or U: prepare and show; while something runs, say what."""
        host = self.here
        operations = host.source.operations
        if operations is None or host.source.state.link.state != "live":
            self._board.flash(
                row(Span(f"not connected to {called(host.source.target)}: nothing can be prepared", "warn"))
            )
        elif host.running is not None:
            self._ask_to_stop(host, operations)
        elif host.preparing:
            self._board.flash(row(dim(f"still {host.preparing} (esc gives up)")))
        else:
            self._work(self._offer(host, operations, kind, variant))

    def give_up(self) -> bool:
        """Esc while a plan is prepared; False where none is."""
        task = self.here.task
        return task.cancel() if task is not None else False

    def unlock(self) -> None:
        """``:unlock``: act after all, or say why not."""
        source = self._board.source
        if source.locked:
            self.refuse()
        else:
            source.unlock()
            self._board.flash(row(dim("connecting again, with all keys")))

    def refuse(self) -> None:
        """A key that acts where nothing may be done: say so, and how it could be."""
        open_ = "this view only watches, by the profile: “unlock” after : gives it all keys"
        self._board.flash(row(Span(self._board.source.locked or open_, "warn")), READ_S)

    def leave(self) -> None:
        """Quit; where a plan runs, ask first."""
        running = self._running()
        if not running or self._leaving:
            self._board.app.exit()
            return
        self._leaving = True
        text = "\n".join(
            (
                *(f"{plan.summary()} on {plan.where}." for plan in running),
                "",
                "Leaving stops it after the step at hand, and does nothing to the server. The journal keeps "
                "how far it came, and the next connect offers to go on.",
            )
        )
        dialog = ConfirmDialog(
            "a plan is under way", text, yes="Leave", no="Stay", holds=lambda: bool(self._running())
        )
        self._board.app.push_screen(dialog, self._left)

    def _running(self) -> list[Plan]:
        return [host.running for host in self._hosts.values() if host.running is not None]

    def _left(self, yes: bool | None) -> None:
        self._leaving = False
        if yes:
            self._board.app.exit()

    # ------------------------------------------------------------------ from a key to a plan

    async def _offer(self, host: Standing, operations: Operations, kind: str, variant: str | None) -> None:
        server = self._server(host)
        where = called(host.source.target)
        what = server.name if server is not None and kind in ("kill", "restart") else where
        host.preparing = f"preparing the plan to {kind} {what}"
        try:
            offer = await self._prepared(host, self._maker(host, operations, kind, variant))
        except SpecdashError as error:
            self._tell(f"{kind}: {what}", error)
            return
        if offer is None:
            self._board.flash(row(dim("given up: nothing was done")))
        else:
            self._show(host, operations, offer)

    async def _prepared(self, host: Standing, make: Callable[[], Awaitable[Offer]]) -> Offer | None:
        """The offer; None where the operator gave up. What takes a while is said."""
        task = host.task = asyncio.ensure_future(make())
        try:
            done, _ = await asyncio.wait({task}, timeout=SOON_S)
            if not done:
                self._board.hold(row(dim(f"{host.preparing} … (esc gives up)")))
                await asyncio.wait({task})
            return None if task.cancelled() else task.result()
        finally:
            task.cancel()
            host.preparing, host.task = "", None
            self._board.hold(None)

    def _maker(
        self, host: Standing, operations: Operations, kind: str, variant: str | None
    ) -> Callable[[], Awaitable[Offer]]:
        server = self._server(host)
        if kind == "kill":
            return partial(self._kill, operations, server)
        if kind == "restart":
            if host.cut_off is not None:
                return partial(_ready, host.cut_off)
            return partial(operations.restart, server, variant=variant)
        if kind == "patch":
            return partial(operations.patch, server)
        return {"clean": operations.clean, "undo": operations.undo}[kind]  # no key falls through to another

    async def _kill(self, operations: Operations, server: Server | None) -> Offer:
        if server is None:
            raise SpecdashError("no server lives here", "C looks for what a dead one left")
        if not alive(server):
            others = "0 leads to the other servers; " if len(self._board.choices) > 1 else ""
            hint = f"{others}C looks for GPU memory that it left"
            raise SpecdashError(f"{server.name} is gone already: no process of it is left", hint)
        return await operations.kill(server)

    def _server(self, host: Standing) -> Server | None:
        """The chosen server as it is now, even while the display is frozen."""
        key = self._board.chosen.server
        return next((server for server in host.source.state.servers if server.key == key), None)

    def _show(self, host: Standing, operations: Operations, offer: Offer) -> None:
        from specdash.tui.screens.plan import PlanDialog

        def hindered() -> str | None:
            link = host.source.state.link
            if link.state != "live":
                return f"the connection to {called(host.source.target)} is {link.state}: nothing was sent"
            return None

        def answered(answer: Answer | None) -> None:
            if answer is None:
                self._board.flash(row(dim("cancelled: nothing was done")))
            elif answer.do == "forget":
                operations.forget()
                host.cut_off = None
                self._board.apply()
            else:
                self._work(
                    self._perform(host, operations, answer.plan),
                    f"{answer.plan.does} on {called(host.source.target)}",
                )

        self._board.app.push_screen(PlanDialog(offer, hindered=hindered), answered)

    # ------------------------------------------------------------------ carrying it out

    def _seen(self, host: Standing, kind: str) -> None:
        """Whoever ends a server or starts it again has seen its alarm: the screen may go on to the next."""
        server = self._server(host)
        for alert in host.source.state.alerts if server is not None and kind in ("kill", "restart") else ():
            if server is not None and alert.alarm and alert.key.startswith(f"server:{server.key}/"):
                host.source.acknowledge(alert.key)

    async def _perform(self, host: Standing, operations: Operations, plan: Plan) -> None:
        self._seen(host, plan.kind)
        if host is self.here:
            self._board.picked = True  # whoever acts on a server has chosen it: it keeps the view
        host.ended = host.cut_off = None
        began = self.now
        try:
            plan = await operations.perform(plan)
        except SpecdashError as error:
            at = operations.desk.plan
            if at is not None and at.id == plan.id and at.begun:  # there is no room for its journal any more
                self._tell(f"cut off: {at.summary()}", error)
            else:
                self._tell(f"{plan.named}: not begun", error)
            return
        host.ended, host.ended_at = plan, host.source.state.now
        host.note(plan.summary(), well=plan.ok)
        if not plan.ok or self.now - began > LONG_S:
            self._board.app.bell()

    def _ask_to_stop(self, host: Standing, operations: Operations) -> None:
        plan = host.running
        assert plan is not None
        text = f"{plan.summary()} on {plan.where}.\n\nIt goes on unless you stop it; what was sent is sent."
        dialog = ConfirmDialog(
            f"{plan.does} is under way already",
            text,
            yes="Stop after this step",
            no="Let it go on",
            holds=lambda: host.running is not None and host.running.id == plan.id,
        )

        def answered(stop: bool | None) -> None:
            if stop:
                operations.desk.cancel()

        self._board.app.push_screen(dialog, answered)

    async def _look_back(self, host: Standing, operations: Operations) -> None:
        """A plan that was cut off earlier is told, once."""
        host.cut_off = await asyncio.to_thread(operations.cut_off)
        host.ended_at = host.source.state.now

    def _work(self, doing: Coroutine[Any, Any, None], name: str = "acting") -> None:
        self._board.run_worker(doing, name=name, group="acting", exit_on_error=False)

    def _tell(self, title: str, error: SpecdashError) -> None:
        self._board.app.push_screen(NoticeDialog(title, error.message, error.hint))


async def _ready(offer: Offer) -> Offer:
    return offer


def _presses(kind: str) -> Callable[[Dashboard], None]:
    return lambda board: board.acting.press(kind)


ACTING_HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "server.kill": _presses("kill"),
    "gpu.clean": _presses("clean"),
    "server.restart": _presses("restart"),
    "config.patch": _presses("patch"),
    "config.undo": _presses("undo"),
}
