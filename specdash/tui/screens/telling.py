"""The part of the dashboard that speaks up: messages in the line of the alerts, and alarms."""

from __future__ import annotations

from collections.abc import Sequence, Set

from textual.message import Message

from specdash.monitor.naming import host_in_full
from specdash.monitor.state import HostState
from specdash.operations.which import Wanted, absent_of
from specdash.tui.paint import Row, Span, row
from specdash.tui.widgets.alerts import AlertLine
from specdash.tui.widgets.painted import TonedScreen

FLASH_S = 5.0
MISSED_S = 20.0
"""Long enough to be seen by who has typed a command and looks up."""

MOVED_S = 10.0
"""Long enough to be read before the next key."""


class Telling(TonedScreen):
    """A screen with an :class:`AlertLine`."""

    class Alarm(Message):
        """A server needs a person: somebody who looks elsewhere should know."""

        def __init__(self, host: str, text: str) -> None:
            super().__init__()
            self.host, self.text = host, text

    def __init__(self) -> None:
        super().__init__()
        self.asking = False
        """A token is on its way."""
        self._rung: Set[str] = frozenset()
        self._flash = self._said = 0
        """The number of the newest message, and of the newest that goes by itself."""

    def ring(self, states: Sequence[HostState]) -> None:
        """Once for each alarm of any host, and again for one that was snoozed and comes back."""
        alarms = {alert.key: (state, alert) for state in states for alert in state.alerts if alert.alarm}
        fresh = [told for key, told in alarms.items() if key not in self._rung]
        for state, alert in fresh:
            self.post_message(self.Alarm(host_in_full(state), alert.text))
        if fresh and (said := self._said):  # it is in the line where the alarm is to be read
            self.set_timer(FLASH_S, lambda: self._unflash(said))
        self._rung = alarms.keys()

    def flash(self, words: str | Row, seconds: float = FLASH_S) -> None:
        """Say something for a moment, in the line of the alerts."""
        line = row(Span(words)) if isinstance(words, str) else words
        self._flash += 1
        mine = self._said = self._flash
        self.query_one(AlertLine).say(line)
        self.set_timer(seconds, lambda: self._unflash(mine))

    def missed(self, wanted: Wanted, states: Sequence[HostState]) -> None:
        """The server that was asked for is nowhere: which are, of which another one is looked at."""
        self.flash(row(Span(absent_of(wanted, states), "warn")), MISSED_S)

    def moved(self, why: str, shown: str) -> None:
        """The view went on to another server, although nobody chose that one."""
        self.flash(row(Span(f"{why}: this view and its keys are now on {shown}", "warn")), MOVED_S)

    def hold(self, words: Row | None) -> None:
        """Say something in the line of the alerts until it is taken away."""
        self._flash += 1
        self.query_one(AlertLine).say(words)

    def _unflash(self, mine: int) -> None:
        if mine == self._flash:
            self.query_one(AlertLine).say(None)
