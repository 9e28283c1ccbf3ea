"""What a session takes from the history and gives to it: input and output for the pure monitor.

The file is touched in a thread of its own, so a slow disk or a locked file never holds up a screen, and
whatever is wrong with it is said once.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from specdash.errors import SpecdashError
from specdash.monitor.baseline import Baseline
from specdash.monitor.learning import GoodStart, Kind
from specdash.monitor.lesson import baselines, cards_of, kind_of, lesson
from specdash.monitor.limits import Learned
from specdash.monitor.memory import Memory

if TYPE_CHECKING:
    from specdash.history.store import Store

LAST_WORDS_S = 1.0
"""How long the end of a session waits for what is still to be written."""

Answer = Callable[[str, "Learned | None"], None]
Errand: TypeAlias = tuple[str, Kind] | dict[str, str] | GoodStart | Baseline
"""What is looked up (a server's kind, cards by UUID) or kept."""


def place() -> Path:
    """Where the history lies: in the state folder of this user."""
    # Imported here: most commands need no state folder.
    import platformdirs

    return platformdirs.user_state_path("specdash") / "history.db"


class Lessons:
    """The history as one session uses it.

    ``learn`` is called in the event loop with a server's key and what its kind has shown; ``complain``
    with the one sentence that says why there is no history.
    """

    def __init__(
        self,
        path: Path,
        learn: Answer,
        complain: Callable[[str], None],
        learn_baselines: Callable[[Mapping[str, int]], None] | None = None,
    ) -> None:
        self._path = path
        self._learn_baselines = learn_baselines
        self._cards: set[str] = set()
        self._idle: dict[str, int] = {}
        self._learn, self._complain = learn, complain
        self._kinds: dict[str, Kind] = {}
        self._kept: set[str] = set()
        self._queue: queue.SimpleQueue[Errand | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._given_up = False

    def attend(self, memory: Memory) -> None:
        """After a frame: look up the kind of what is new, keep what has become ready."""
        if self._given_up:
            return
        self._attend_cards(memory)
        here = {server.key for server in memory.servers}
        self._kept &= here
        for gone in self._kinds.keys() - here:
            del self._kinds[gone]
        for server in memory.servers:
            key = server.key
            if server.course.ready_at is None:
                kind = kind_of(memory, server)
                if kind is not None and self._kinds.get(key) != kind:
                    self._kinds[key] = kind
                    self._put((key, kind))
            elif key not in self._kept:
                self._kept.add(key)
                start = lesson(memory, server)
                if start is not None:
                    self._put(start)

    def _attend_cards(self, memory: Memory) -> None:
        """Look up what new cards show when they are idle, and keep what they show now."""
        cards = cards_of(memory)
        new = {uuid: call for uuid, call in cards.items() if uuid not in self._cards}
        if new:
            self._cards.update(new)
            self._put(new)
        for uuid, one in baselines(memory).items() if cards else ():
            if self._idle.get(uuid) != one.mib:
                self._idle[uuid] = one.mib
                self._put(one)

    async def close(self) -> None:
        """Finish what is to be written, as far as that takes no more than a second."""
        if self._thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join, LAST_WORDS_S)

    def _put(self, errand: Errand) -> None:
        if self._thread is None:
            loop = asyncio.get_running_loop()
            # A daemon: a dead network disk must not keep the program from ending.
            self._thread = threading.Thread(target=self._work, args=(loop,), name="history", daemon=True)
            self._thread.start()
        self._queue.put(errand)

    # ---- in the thread ---------------------------------------------------------------------------------

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        store: Store | None = None
        try:
            from specdash.history.store import Store

            store = Store(self._path)
            while (errand := self._queue.get()) is not None:
                if isinstance(errand, GoodStart):
                    store.keep(errand)
                elif isinstance(errand, Baseline):
                    store.keep_baseline(errand)
                elif isinstance(errand, dict):
                    if self._learn_baselines is not None:
                        _tell(loop, self._learn_baselines, store.baselines(errand))
                else:
                    key, kind = errand
                    _tell(loop, self._learn, key, store.learned(kind))
        except SpecdashError as error:
            self._give_up(loop, str(error))
        except Exception as error:  # a Python without SQLite, or a fault of ours: never the session's end
            self._give_up(loop, f"{type(error).__name__}: {error}")
        finally:
            if store is not None:
                store.close()

    def _give_up(self, loop: asyncio.AbstractEventLoop, reason: str) -> None:
        self._given_up = True
        _tell(loop, self._complain, f"no history of starts, so nothing is learned: {reason}")


def _tell(loop: asyncio.AbstractEventLoop, told: Callable[..., None], *what: object) -> None:
    with contextlib.suppress(RuntimeError):  # the session may have ended meanwhile
        loop.call_soon_threadsafe(told, *what)
