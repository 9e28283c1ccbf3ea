"""Benchmarks on the host that somebody listens to, over however many links that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specdash.monitor.frames import Bench, Reply

_ID = "follow-"


class Following:
    """Who listens to which run. ``send`` says whether an agent was there to hear it."""

    def __init__(self, send: Callable[[Mapping[str, Any]], bool]) -> None:
        self._send = send
        self._heard: dict[str, Callable[[Bench], None]] = {}
        self._refused: dict[str, Callable[[str], None]] = {}
        self._offsets: dict[str, int] = {}

    def follow(
        self, run: str, heard: Callable[[Bench], None], refused: Callable[[str], None] | None = None
    ) -> Callable[[], None]:
        """Hear every line of a run, each once and in order; returns the undo.

        ``refused``: hears why there is nothing to follow: the host was restarted, the run's folder is gone.
        """
        self._heard[run] = heard
        if refused is not None:
            self._refused[run] = refused
        self._offsets[run] = 0
        self._ask(run)
        return lambda: self._forget(run)

    def take(self, frame: Bench) -> None:
        """Lines have come. Those that came already, or of a run that nobody listens to, are dropped."""
        heard = self._heard.get(frame.run)
        if heard is None or (frame.offset <= self._offsets[frame.run] and not frame.over):
            return
        self._offsets[frame.run] = frame.offset
        heard(frame)

    def answer(self, reply: Reply) -> None:
        """The host's answer to a wish to follow; only a refusal matters."""
        refused = self._refused.get(reply.id.removeprefix(_ID)) if reply.id.startswith(_ID) else None
        if refused is not None and not reply.ok:
            refused(reply.error or "refused without a reason")

    def again(self) -> None:
        """A new agent is there: it goes on where the last one was."""
        for run in tuple(self._heard):
            self._ask(run)

    def _ask(self, run: str) -> None:
        request = {"r": "bench_follow", "run": run, "offset": self._offsets[run]}
        self._send({**request, "id": f"{_ID}{run}"})

    def _forget(self, run: str) -> None:
        self._heard.pop(run, None)
        self._refused.pop(run, None)
        self._offsets.pop(run, None)
