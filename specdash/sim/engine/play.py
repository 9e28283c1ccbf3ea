"""Plays the script on the host's clock, and watches over the ranks as the engine's main process does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from specdash.sim.adapter import Clock
from specdash.sim.engine import texts
from specdash.sim.engine.acts import Act, Bar, Do, Say, Show
from specdash.sim.engine.crew import Crew, Member, state_of
from specdash.sim.engine.log import Log
from specdash.sim.engine.picture import Picture
from specdash.sim.scenarios import Course

GUARD_S = 0.25
"""Real seconds between two looks at the ranks."""


class Player:
    """The start of a server. ``opened`` says whether it came to its port."""

    def __init__(
        self, folder: Path, clock: Clock, log: Log, crew: Crew, picture: Picture, course: Course, born: float
    ) -> None:
        self.folder = folder
        self.course = course
        self.clock = clock
        self.log = log
        self.crew = crew
        self.picture = picture
        self.born = born
        self.opened = False
        self.stopped: Member | None = None
        """A rank in state T: the others wait for it."""
        self.stopped_at = 0.0
        self.dead: asyncio.Future[Member] = asyncio.get_running_loop().create_future()
        """The first rank that ended without being asked to."""
        self._held = 0.0
        self.moving = asyncio.Event()
        """Set while no rank is stopped."""
        self.moving.set()
        self._before: tuple[str, ...] = ()

    async def play(self, acts: Sequence[Act]) -> None:
        """Do everything at its second; what is already past at once, and then the log is as old as that."""
        last = self.born
        for act in acts:
            await self.until(act.at)
            last = self.born + self._held + act.at
            self._perform(act, last)
        if last < self.clock.now() - 1.0:
            self.log.date_back(last)
        (self.folder / "servers" / f"{os.getpid()}.played").touch()
        if self.course.killed:
            os.kill(os.getpid(), signal.SIGKILL)

    async def until(self, at: float) -> None:
        """Wait for a second of the script; a rank that is stopped holds it up."""
        while True:
            await self.moving.wait()
            left = self.born + self._held + at - self.clock.now()
            if left <= 0:
                return
            await asyncio.sleep(min(left / self.clock.speed, GUARD_S))

    def _perform(self, act: Act, at: float) -> None:
        match act:
            case Say(text=text, rank=rank, bare=bare):
                if bare:
                    self.log.bare(at, text)
                else:
                    self.log.say(at, text, rank)
            case Bar(text=text):
                self.log.bar(text)
            case Show(moods=moods, mib=mib):
                self.picture.show(moods, mib, at)
            case Do(what=what):
                self._do(what, at)

    def _do(self, what: str, at: float) -> None:
        if what == "spawn":
            self.crew.spawn()
        elif what == "title":
            self.crew.title()
        elif what == "compile":
            self.crew.compile()
            self.picture.show(self.picture.moods, self.picture.mib, at)
        elif what == "compiled":
            self.crew.compiled()
            self.picture.show(self.picture.moods, self.picture.mib, at)
        elif what == "open":
            self.opened = True
        elif what == "die":
            self.end()

    def end(self) -> None:
        """Kill the tree and then this very process, as the engine does after a clean drain too."""
        self.crew.kill()
        os.kill(os.getpid(), signal.SIGKILL)

    async def guard(self, first_process: int) -> None:
        """Look after the ranks; end when the simulated host is gone."""
        while not _is_gone(first_process):
            self.crew.reap()
            states = {member: state_of(member) for member in self.crew.ranks}
            gone = next((member for member, state in states.items() if state in "ZX"), None)
            if gone and not self.dead.done():
                self.dead.set_result(gone)
                if not self.opened:
                    self._died_early(gone)
            self._hold(next((member for member, state in states.items() if state in "Tt"), None))
            await asyncio.sleep(GUARD_S)
        self.end()

    def _hold(self, stopped: Member | None) -> None:
        if stopped and not self.stopped:
            self.stopped, self.stopped_at = stopped, self.clock.now()
            self.moving.clear()
            self._before = self.picture.moods
            moods = ("guilty" if gpu == stopped.gpu else "waiting" for gpu in range(len(self._before)))
            self.picture.show(tuple(moods), self.picture.mib)
        elif self.stopped and not stopped:
            self._held += self.clock.now() - self.stopped_at
            self.stopped = None
            self.picture.show(self._before, self.picture.mib)
            self.moving.set()

    def _died_early(self, gone: Member) -> None:
        """A rank that ends before the port is open takes the server with it."""
        for line in texts.died_in_init(gone.gpu or 0):
            self.log.bare(self.clock.now(), line)
        self.log.now(texts.kill_tree(os.getpid()))
        self.end()


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()
