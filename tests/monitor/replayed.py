"""What the monitor says while a recording of real cards is played to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from specdash.history.recording import SUFFIX, Recording
from specdash.intake.rules import default_rules
from specdash.monitor.observe import observe, start
from specdash.monitor.state import Alert, Server
from specdash.monitor.words import ALARM_STATES

RECORDINGS = Path(__file__).parent.parent / "recordings"
EPOCH = 1795960000.0
"""The zero of the times below."""


@dataclass(frozen=True)
class Moment:
    """A server as it was shown from this second on."""

    at: float
    server: Server

    @property
    def state(self) -> str:
        return self.server.state

    @property
    def root(self) -> str | None:
        return next((one.key for one in self.server.diagnoses if one.root), None)

    @property
    def keys(self) -> set[str]:
        return {one.key for one in self.server.diagnoses}

    @property
    def alarms(self) -> bool:
        return self.server.state in ALARM_STATES


@dataclass
class Story:
    """Everything that was said of one server."""

    moments: list[Moment] = field(default_factory=list)

    def between(self, begin: float, end: float) -> Iterator[Moment]:
        """What was shown in this span, what stood at its beginning included."""
        before = [moment for moment in self.moments if moment.at <= begin]
        yield from before[-1:]
        yield from (moment for moment in self.moments if begin < moment.at <= end)

    def first(self, state: str, begin: float, end: float = 1e9) -> Moment:
        """When it was first shown in this state. Raises AssertionError where it never was."""
        for moment in self.between(begin, end):
            if moment.state == state:
                return moment
        said = [(round(moment.at, 1), moment.state) for moment in self.between(begin, end)]
        raise AssertionError(f"never {state} between {begin} and {end}: {said}")

    def alarms(self, begin: float, end: float) -> list[tuple[float, str, str | None]]:
        """Every alarm state in this span."""
        return [(m.at, m.state, m.root) for m in self.between(begin, end) if m.alarms]


@dataclass
class Played:
    """A whole recording."""

    stories: dict[int, Story] = field(default_factory=dict)
    """By the main process's pid."""
    alerts: dict[str, Alert] = field(default_factory=dict)


@cache
def play(name: str) -> Played:
    """Feed every frame to the monitor, with the rules that are shipped."""
    recording = Recording(RECORDINGS / f"{name}{SUFFIX}")
    memory = start(recording.header.host, default_rules())
    played = Played()
    for frame in recording.frames():
        memory = observe(memory, frame)
        picture = memory.picture
        for server in picture.servers:
            story = played.stories.setdefault(server.pid, Story())
            shown = Moment(picture.now - EPOCH, server)
            if not story.moments or _different(story.moments[-1], shown):
                story.moments.append(shown)
        played.alerts.update((alert.key, alert) for alert in picture.alerts)
    return played


def _different(before: Moment, now: Moment) -> bool:
    one, other = before.server, now.server
    return (one.state, one.phase, one.verdict.word, one.lagging, one.diagnoses) != (
        other.state, other.phase, other.verdict.word, other.lagging, other.diagnoses
    )  # fmt: skip
