"""Clients that ask now and then, so that the serving figures live: the same ones in every simulation."""

from __future__ import annotations

from collections.abc import Iterator

from specdash.sim.engine.batch import Request


class Traffic:
    """A light load: one to three requests at a time, with pauses between them."""

    def __init__(self, now: float) -> None:
        self._next = now + 4.0
        self._number = 0

    def due(self, now: float) -> Iterator[Request]:
        """All that arrive until now."""
        while self._next <= now:
            n = self._number
            self._number += 1
            client = f"10.12.0.{20 + n * 7 % 9}:{41000 + n * 37 % 20000}"
            yield Request(90 + n * 131 % 900, 180 + n * 97 % 620, self._next, client)
            # Two in a row, then a breath: the figures rise, fall and rest.
            self._next += 3.0 if n % 3 == 0 else 9.0 + n * 5 % 12
