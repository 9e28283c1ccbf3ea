"""The small words of the script: a record, a bar, a look, a deed, and the clock of the story."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from specdash.sim.engine import texts
from specdash.sim.engine.acts import Act, Bar, Deed, Do, Say, Setting, Show
from specdash.sim.engine.sizes import USABLE_MIB, gib
from specdash.sim.scenarios import Course


class TheEnd(Exception):
    """The start goes no further: it hangs or crashes here."""


class Writer:
    """Writes the acts; ``t`` is the second the story has come to, ``mib`` what each rank then holds."""

    def __init__(self, course: Course, setting: Setting) -> None:
        self.course = course
        self.setting = setting
        self.ranks = range(setting.tp)
        self.acts: list[Act] = []
        self.t = 0.0
        self.mib = 0

    def say(self, text: str, rank: int | None = None, *, after: float = 0.0, bare: bool = False) -> None:
        """Write a record, ``after`` seconds from now."""
        self.acts.append(Say(self.t + after, text, rank, bare))

    def all_say(self, text: Callable[[int], str], spread: float) -> None:
        """Every rank says it, each a little later than another; the order is not that of their numbers."""
        for rank in self.ranks:
            self.say(text(rank), rank, after=self.late(rank) * spread)
        self.t += spread

    def late(self, rank: int) -> float:
        """From 0 to 1, another for each rank."""
        return (rank * 5 + 3) % self.setting.tp / max(1, self.setting.tp - 1)

    def show(
        self, mood: str, mib: int | None = None, *, after: float = 0.0, odd: tuple[int, str] | None = None
    ) -> None:
        """Let all ranks and cards look like this, but for the odd one."""
        self.mib = self.mib if mib is None else mib
        moods = tuple(odd[1] if odd and odd[0] == rank else mood for rank in self.ranks)
        self.acts.append(Show(self.t + after, moods, self.mib))

    def do(self, what: Deed, after: float = 0.0) -> None:
        """Let something happen to processes or ports."""
        self.acts.append(Do(self.t + after, what))

    def bar(self, updates: Iterator[tuple[float, str]], until: float | None = None) -> None:
        """Draw a bar from now on and close it; with ``until`` it stops there, open, for ever."""
        last = 0.0
        for at, text in updates:
            if until is not None and at > until:
                return
            self.acts.append(Bar(self.t + at, text))
            last = at
        if until is None:
            self.acts.append(Bar(self.t + last, None))

    def avail(self, more: int = 0) -> str:
        """GiB that a card still has, as the engine prints it, when ``more`` MiB are taken."""
        return gib(USABLE_MIB - self.mib - more)

    def crash(self, traceback: str, ranks: list[int]) -> None:
        """An exception on these ranks, one after the other, and what the main process makes of it."""
        for n, rank in enumerate(rank for rank in ranks if rank in self.ranks):
            self.say(traceback, rank, after=0.02 * n)
        self.t += 0.06
        self.say("Received sigquit from a child process. It usually means the child failed.")
        self.say(texts.kill_tree(self.setting.pid))
        self.do("die")
        raise TheEnd
