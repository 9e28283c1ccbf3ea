"""The one table of what a key does. Bindings, footer, palette, help and ``specdash keys`` come from it.

Lower case looks; a capital changes the server and asks first. What is not built yet stands in the table
with ``available=False`` and is shown by ``specdash keys`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Risk = Literal["read", "soft", "hard"]
Scope = Literal["any", "dashboard", "log", "steps", "compare"]
Group = Literal["move", "log", "view", "server", "steps", "compare", "program"]

GROUP_TITLES: Final[dict[Group, str]] = {
    "move": "move",
    "log": "log",
    "view": "look",
    "server": "act on the server",
    "steps": "steps",
    "compare": "compare",
    "program": "program",
}


@dataclass(frozen=True)
class Action:
    """One thing a key does."""

    id: str
    keys: tuple[str, ...]
    """Names as Textual knows them."""
    label: str
    """The keys as a person reads them."""
    verb: str
    """For the footer: what pressing it does, never what is."""
    help: str
    group: Group
    scope: Scope = "any"
    risk: Risk = "read"
    width: int | None = None
    """From how many columns on the footer names it; None: never."""
    available: bool = True


def _later(
    id_: str, key: str, verb: str, text: str, group: Group, scope: Scope = "any", risk: Risk = "read"
) -> Action:
    return Action(id_, (key,), key, verb, text, group, scope, risk, available=False)


def _acts(id_: str, key: str, verb: str, text: str, *, width: int | None = None) -> Action:
    return Action(id_, (key,), key, verb, text, "server", risk="hard", width=width)


def _lists(id_: str, key: str, verb: str, text: str, *, name: str = "") -> Action:
    return Action(id_, (name or key,), key, verb, text, "steps", "steps")


ACTIONS: Final[tuple[Action, ...]] = (
    Action("move.down", ("j", "down"), "j ↓", "down", "one line down; the next card or step", "move"),
    Action("move.up", ("k", "up"), "k ↑", "up", "one line up; the card or step before", "move"),
    Action("move.left", ("h", "left"), "h ←", "left", "to the left; on the strip: the server before", "move"),
    Action(
        "move.right", ("l", "right"), "l →", "right", "to the right; on the strip: the next server", "move"
    ),
    Action("move.top", ("g", "home"), "g", "top", "the oldest line", "move"),
    Action("move.bottom", ("G", "end"), "G", "newest", "the newest line, and follow", "move"),
    Action("move.half_down", ("ctrl+d",), "ctrl+d", "half down", "half a page down", "move"),
    Action("move.half_up", ("ctrl+u",), "ctrl+u", "half up", "half a page up", "move"),
    Action("move.page_down", ("pagedown",), "PgDn", "page down", "a page down", "move"),
    Action("move.page_up", ("pageup",), "PgUp", "page up", "a page up", "move"),
    Action("pane.next", ("tab",), "tab", "next pane", "the next pane (shift+tab: the one before)", "move"),
    Action(
        "pane.strip",
        ("0",),
        "0",
        "to hosts",
        "the strip of servers, at the one of a told alarm",
        "move",
    ),
    Action("pane.gpu", ("1",), "1", "gpu", "the GPUs", "move"),
    Action("pane.log", ("2",), "2", "log", "the log", "move"),
    Action("pane.steps", ("3",), "3", "steps", "the steps", "move"),
    Action("pane.bench", ("4",), "4", "bench", "the benchmark and the runs that were kept", "move"),
    Action("pane.compare", ("5",), "5", "compare", "variants side by side, with a verdict", "move"),
    Action("pane.zoom", ("z",), "z", "zoom", "the pane alone; again, or esc: all of them", "move", width=80),
    Action("back", ("escape",), "esc", "back", "back: leave the search, the filter, the zoom", "move"),
    Action("log.find", ("slash",), "/", "find", "search in the log", "log", "log", width=60),
    Action("log.filter", ("ampersand",), "&", "filter", "only the lines that match", "log", "log", width=160),
    Action("log.find_next", ("n",), "n", "next", "the next hit", "log", "log"),
    Action("log.find_previous", ("N",), "N", "previous", "the hit before", "log", "log"),
    Action("log.error", ("e",), "e", "error", "the next error", "log", "log", width=60),
    Action("log.error_previous", ("E",), "E", "error before", "the error before", "log", "log"),
    Action(
        "log.phase_previous",
        ("left_square_bracket",),
        "[",
        "phase before",
        "the phase or mark before",
        "log",
        "log",
    ),
    Action(
        "log.phase",
        ("right_square_bracket",),
        "]",
        "phase",
        "the next phase or mark",
        "log",
        "log",
        width=120,
    ),
    Action(
        "log.gap",
        ("s",),
        "s",
        "longest gap",
        "the longest silence; again: the next longest",
        "log",
        "log",
        width=120,
    ),
    Action("log.follow", ("f",), "f", "follow", "follow the newest line, or stop it", "log", "log", width=70),
    Action("log.wrap", ("w",), "w", "wrap", "wrap long lines, or cut them", "log", "log", width=140),
    Action(
        "log.time",
        ("t",),
        "t",
        "times",
        "times: short, as printed, of arrival, age",
        "log",
        "log",
        width=160,
    ),
    Action("log.polls", ("p",), "p", "polls", "show polls, or hide them", "log", "log"),
    Action("log.mark", ("m",), "m", "mark", "mark the line, or take the mark away", "log", "log"),
    Action(
        "copy", ("y",), "y", "copy", "copy the selection, the line, or the screen", "log", "log", width=130
    ),
    Action(
        "log.save",
        ("ctrl+s",),
        "ctrl+s",
        "save",
        "save the log, or what is filtered, to a file",
        "log",
        "log",
    ),
    Action(
        "view.freeze", ("space",), "space", "freeze", "hold the display; data goes on", "view", "dashboard"
    ),
    Action("detail", ("enter",), "enter", "detail", "all about the chosen card, phase, step or line", "view"),
    Action(
        "alert.ack",
        ("x",),
        "x",
        "acknowledge",
        "put away what the last line names",
        "view",
        width=60,
    ),
    Action("alert.snooze", ("X",), "X", "snooze", "the alert that is shown may wait ten minutes", "view"),
    Action("view.events", ("o",), "o", "events", "what has happened: alarms, recoveries, the link", "view"),
    Action("conn.retry", ("r",), "r", "refresh", "look again now; reconnect now", "view", width=110),
    Action("view.env", ("v",), "v", "environment", "the environment by rank", "view"),
    Action("evidence", ("d",), "d", "evidence", "all that is known of this host, in one file", "view"),
    Action("server.token", ("T",), "T", "token", "ask for one token: it proves READY", "server", risk="soft"),
    _acts("server.kill", "K", "kill", "stop the server by its ladder, verify its GPUs", width=100),
    _acts("gpu.clean", "C", "clean", "end what still holds GPU memory"),
    _acts("server.restart", "R", "restart", "stop, verify, start again, ready by a token", width=120),
    _acts("config.patch", "P", "patch", "the known fix of what went wrong, by its diff"),
    _acts("config.undo", "U", "undo", "take the newest patch back"),
    Action("bench.run", ("B",), "B", "bench", "benchmark; again: stop it", "server", risk="soft", width=120),
    _lists("steps.add", "a", "add", "a to-do of your own"),
    _lists("steps.tick", "space", "tick", "tick the chosen to-do; enter does, too"),
    _lists("steps.edit", "i", "edit", "change its words and its note"),
    _lists("steps.up", "<", "up", "move the to-do up", name="less_than_sign"),
    _lists("steps.down", ">", "down", "move the to-do down", name="greater_than_sign"),
    _lists("steps.delete", "D", "delete", "take the to-do away"),
    Action("bench.mark", ("space",), "space", "mark", "mark a run", "compare", "compare"),
    Action("bench.diff", ("d",), "d", "difference", "the difference of two runs", "compare", "compare"),
    Action("palette", ("colon",), ":", "command", "every command by name (also ctrl+p)", "program", width=60),
    Action("help", ("question_mark",), "?", "help", "these keys", "program", width=60),
    Action("quit", ("q",), "q", "quit", "back; at the top: quit, the server goes on", "program", width=60),
)

BY_ID: Final[dict[str, Action]] = {action.id: action for action in ACTIONS}
"""The same with the keys of whoever sits here: see :mod:`specdash.tui.keymap`."""


def allowed(action: Action, *, watch_only: bool, probe: bool = False) -> bool:
    """It is built, and this connection may do it.

    Under ``--watch`` nothing but looking exists; ``--probe`` allows a token all the same.
    """
    probing = probe and action.id == "server.token"
    return action.available and (action.risk == "read" or probing or not watch_only)


def shown(*, watch_only: bool, probe: bool = False) -> tuple[Action, ...]:
    """What help, palette and footer may name."""
    return tuple(action for action in BY_ID.values() if allowed(action, watch_only=watch_only, probe=probe))
