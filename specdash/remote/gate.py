"""What the host may say: a line is let in only if it is a frame, of a kind that hosts send, at its place.

A broken or hostile host must be able to neither stop the dashboard nor forge what only this side may say
(the state of the link, the passing of time).
"""

from __future__ import annotations

import math

from specdash.monitor import frames
from specdash.monitor.frames import AnyFrame
from specdash.remote.errors import said


class Gate:
    """Lets frames of one connection in and counts what is none."""

    def __init__(self) -> None:
        self.greeted = False
        """The hello came; before it, nothing else is let in."""
        self.refused = 0
        """Lines that were not let in."""
        self.last = ""
        """The last of them, in words."""

    def take(self, line: bytes) -> AnyFrame | None:
        """Give the line's frame, or None and count it."""
        try:
            frame = frames.decode(line)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            self.refuse(said(line[:200]) or "an empty line")
            return None
        born_here = isinstance(frame, frames.Link | frames.Tick | frames.Ending)
        if born_here or not math.isfinite(frame.at) or isinstance(frame, frames.Hello) is self.greeted:
            self.refuse(f"a frame {type(frame).__name__.lower()} that has no place here")
            return None
        self.greeted = True
        return frame

    def refuse(self, what: str) -> None:
        """Count a line that is no frame."""
        self.refused += 1
        self.last = what

    def complaint(self) -> str | None:
        """Say so at the 1st, 10th, 100th, …: a flood of bad lines must not become a flood of notes."""
        if self.refused and math.log10(self.refused).is_integer():
            return f"{self.refused} unreadable from the host, last: {self.last}"
        return None
