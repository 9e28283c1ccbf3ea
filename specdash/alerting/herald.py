"""Watches hosts and tells what changes, one message a change, from a thread of its own."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from specdash.alerting.rules import RUNBOOK, Change, changes, seen, wanted
from specdash.alerting.sending import Send, send
from specdash.errors import SpecdashError
from specdash.profile.document import Notify
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.session.source import Source

LAST_S = 5.0
"""How long leaving waits for a message under way."""
LATEST_S = 900.0
"""A message that could not be sent for so long is not sent any more."""


class Herald:
    """``complain`` is told once of each rule that does not work; it may be called from another thread."""

    def __init__(
        self,
        rules: Mapping[str, Notify],
        complain: Callable[[str], None],
        *,
        send: Send = send,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rules, self._complain, self._send, self._clock = dict(rules), complain, send, clock
        self._before: dict[int, dict[str, str]] = {}
        self._queue: queue.SimpleQueue[tuple[float, str, str, str] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._said: set[str] = set()

    def attend(self, sources: Sequence[Source], hosts: Sequence[str | None]) -> None:
        """Listen to these; ``hosts``: their names in the profile."""
        if self._rules:
            for source, host in zip(sources, hosts, strict=True):
                source.subscribe(lambda source=source, host=host: self._look(source, host))  # type: ignore[misc]

    def _look(self, source: Source, host: str | None) -> None:
        state = source.state
        before = self._before.get(id(source), {})
        found = list(changes(before, state))
        self._before[id(source)] = seen(state)
        for change in found:
            self._tell(change, host)

    def say(self, host: str | None, shown: str, words: str) -> None:
        """What a runbook says. ``shown``: the host as a person knows it."""
        self._tell(Change(host=shown, state=RUNBOOK, text=words), host)

    def _tell(self, change: Change, host: str | None) -> None:
        now = self._clock()
        local = time.localtime(now)
        for name, rule in self._rules.items():
            if wanted(rule, host, change.state, local.tm_hour * 60 + local.tm_min):
                self._put((now, name, clean_line(f"specdash {change.host}"), clean_line(change.text)))

    def _put(self, errand: tuple[float, str, str, str]) -> None:
        if self._thread is None:
            # A daemon: a dead network must not keep the program from ending.
            self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
            self._thread.start()
        self._queue.put(errand)

    def close(self) -> None:
        """Send what is still to be sent, as far as that takes no more than a moment."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(LAST_S)

    def _work(self) -> None:
        while (errand := self._queue.get()) is not None:
            at, name, title, body = errand
            if self._clock() - at > LATEST_S:
                continue
            try:
                self._send(self._rules[name], title, body)
            except SpecdashError as error:
                self._once(name, f"notify {name}: {error}")
            except Exception as error:  # a fault of a library we do not know: never the program's end
                self._once(name, f"notify {name}: {type(error).__name__}")

    def _once(self, name: str, words: str) -> None:
        if name not in self._said:
            self._said.add(name)
            self._complain(clean_line(words))
