"""How frames become a picture while somebody is watching: a frame that breaks us costs only itself.

The monitor is meant to digest whatever a host says, and tests throw a lot at it. Should it fail all the
same, the watch goes on with the picture from before that frame, and says so among the notes.
"""

from __future__ import annotations

import os

from specdash.monitor.frames import AnyFrame, Ending, Link, Note, Tick
from specdash.monitor.memory import Memory
from specdash.monitor.observe import observe
from specdash.sanitise import clean_line

_BORN_HERE = (Link, Tick, Note, Ending)
_LONGEST = 200


def take(memory: Memory, frame: AnyFrame) -> Memory:
    """The memory after this frame.

    Raises what ``observe`` raises for frames that are born on this side: a clock that stands still would be
    a lie, and those frames hold nothing foreign. With ``SPECDASH_DEBUG`` set it raises for all frames.
    """
    try:
        return observe(memory, frame)
    except Exception as error:
        if isinstance(frame, _BORN_HERE) or os.environ.get("SPECDASH_DEBUG"):
            raise
        kind = type(frame).__name__.lower()
        words = clean_line(f"{type(error).__name__}: {error}")[:_LONGEST]
    text = f"a {kind} frame could not be understood and was left out; a fault of specdash: {words}"
    if text in memory.picture.notes:
        return memory
    return observe(memory, Note(at=memory.picture.now, level="error", text=text))
