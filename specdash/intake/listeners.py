"""Who is told that a picture has changed, be it live or replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Listeners:
    """Told soon after each change; changes that come together share one call."""

    def __init__(self) -> None:
        self._all: list[Callable[[], None]] = []
        self._due = False

    def add(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` from now on; returns the undo."""
        self._all.append(changed)
        return lambda: self._all.remove(changed)

    def tell(self) -> None:
        """Something has changed. Needs a running loop where somebody listens."""
        if self._all and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        self._due = False
        for changed in tuple(self._all):
            changed()
