"""The operator's own keys: ``keys.toml`` in the config folder, an action id and its key or keys.

.. code-block:: toml

    log.find = "ctrl+f"
    move.down = ["j", "down"]

Textual drops clashing keys without a word, so all of it is checked here. A file with one mistake changes
nothing: half a keymap would be a third one that nobody knows. Keys that act and keys that only look never
change places.
"""

from __future__ import annotations

import difflib
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import platformdirs
import tomli
from textual.keys import _character_to_key

from specdash import ownfiles, plainly
from specdash.profile.lines import line_of, lines_of
from specdash.tui.actions import ACTIONS, BY_ID, Action
from specdash.wording import why

Keys = dict[str, tuple[str, ...]]

_ALIASES: Final = {
    "esc": "escape", "return": "enter", "pgdn": "pagedown", "pgup": "pageup", "page_down": "pagedown",
    "page_up": "pageup", "del": "delete", "ins": "insert", "spacebar": "space",
}  # fmt: skip
_NAMED: Final = frozenset(
    "escape enter space tab backspace delete insert home end pageup pagedown up down left right".split()
) | {f"f{number}" for number in range(1, 25)}
_LABELS: Final = {
    **{_character_to_key(char): char for char in string.punctuation},
    "escape": "esc", "pagedown": "PgDn", "pageup": "PgUp", "up": "↑", "down": "↓", "left": "←", "right": "→",
}  # fmt: skip
_TAKEN: Final = {
    "ctrl+c": "leaves or copies", "ctrl+q": "quits", "ctrl+p": "opens the palette",
    "ctrl+i": "is tab to a terminal", "ctrl+m": "is enter to a terminal", "ctrl+j": "is enter to a terminal",
    "ctrl+h": "is backspace to a terminal", "ctrl+z": "stops programs",
}  # fmt: skip


@dataclass(frozen=True)
class Keymap:
    """What the operator's file says: the keys by action, or what is wrong with it (then no keys)."""

    path: Path
    keys: Mapping[str, tuple[str, ...]]
    problems: tuple[str, ...] = ()


def place() -> Path:
    """Where the operator's keys are looked for."""
    return platformdirs.user_config_path("specdash") / "keys.toml"


def load(path: Path | None = None) -> Keymap:
    """Read the operator's keys; a file that is not there says nothing, a wrong one changes nothing."""
    path = path or place()
    try:
        text = ownfiles.text_of(path)
    except FileNotFoundError:
        return Keymap(path, {})
    except (OSError, UnicodeDecodeError) as error:
        return Keymap(path, {}, (f"{path}: {why(error)}",))
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        line, says = plainly.syntax(str(error), text)
        return Keymap(path, {}, (f"{path}, line {line}: {says}",))
    lines = lines_of(text)
    keys: Keys = {}
    problems: list[tuple[str, str]] = []
    for id_, value in _flat(data):
        try:
            keys[id_] = _keys_of(id_, value)
        except ValueError as error:  # noqa: PERF203  (each line is judged)
            problems.append((id_, str(error)))
    problems += [] if problems else _clashes(keys)
    told = tuple(f"{path}, line {line_of(lines, id_) or 1}: {id_}: {words}" for id_, words in problems)
    return Keymap(path, {} if told else keys, told)


def adopt(keys: Mapping[str, tuple[str, ...]]) -> None:
    """From now on these keys do these things, wherever the table is asked; others have their usual ones."""
    for action in ACTIONS:
        own = keys.get(action.id)
        label = " ".join(map(label_of, own)) if own else action.label
        BY_ID[action.id] = replace(action, keys=own or action.keys, label=label)


def changed() -> dict[str, str]:
    """Action id → keys, as Textual takes them, of every action that has not its usual keys."""
    return {a.id: ",".join(BY_ID[a.id].keys) for a in ACTIONS if BY_ID[a.id].keys != a.keys}


def key_of(text: str) -> str:
    """The key as Textual names it: ``/``, ``K``, ``ctrl+f``, ``PgDn``. Raises ``ValueError``."""
    word = text.strip() if len(text) > 1 else text
    if len(word) == 1 and word.isprintable():
        return "space" if word == " " else _character_to_key(word)
    *modifiers, base = word.split("+") if not word.endswith("++") else [*word[:-2].split("+"), "+"]
    base = base if len(base) == 1 else _ALIASES.get(base.lower(), base.lower())
    modifiers = sorted({modifier.lower() for modifier in modifiers})
    single = len(base) == 1 and base.isprintable()
    if not set(modifiers) <= {"ctrl", "shift", "alt"} or not (single or base in _NAMED):
        close = difflib.get_close_matches(base, sorted(_NAMED | set(_ALIASES)), n=1)
        raise ValueError(f"there is no key {text!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
    if single and modifiers == ["shift"] and base.isalpha():
        return base.upper()
    return "+".join([*modifiers, _character_to_key(base.lower()) if single else base])


def label_of(key: str) -> str:
    """The key as a person reads it."""
    *modifiers, base = key.split("+")
    return "+".join([*modifiers, _LABELS.get(base, base)])


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        id_ = f"{before}.{name}" if before else name
        if isinstance(value, dict):
            yield from _flat(value, id_)
        else:
            yield id_, value


def _keys_of(id_: str, value: object) -> tuple[str, ...]:
    """The keys of one line. Raises ``ValueError`` with what is wrong with it."""
    usual = {action.id: action for action in ACTIONS if action.available}
    if id_ not in usual:
        close = difflib.get_close_matches(id_, sorted(usual), n=1, cutoff=0.5)
        raise ValueError("there is no such action" + (f" (did you mean {close[0]}?)" if close else ""))
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(w, str) and w for w in words):
        raise ValueError('give it a key, "x", or a list of keys, ["x", "f5"]')
    keys = tuple(dict.fromkeys(map(key_of, words)))
    for key in keys:
        if key in _TAKEN:
            raise ValueError(f"{label_of(key)} {_TAKEN[key]}")
        _keep_apart(usual[id_], key)
    return keys


def _keep_apart(action: Action, key: str) -> None:
    """Whoever knows the usual keys must never change a server by one that looks, or the other way round."""
    if key in action.keys:
        return
    acts = action.risk != "read"
    owner = next((a for a in ACTIONS if key in a.keys and (a.risk != "read") != acts), None)
    if owner is not None and acts:
        raise ValueError(f"it acts on the server, and {label_of(key)} only looks ({owner.id})")
    if owner is not None:
        raise ValueError(f"it only looks, and {label_of(key)} acts on the server ({owner.id})")
    if acts and not (key.startswith(("ctrl+", "alt+")) or (key[0] == "f" and key in _NAMED) or key.isupper()):
        raise ValueError(f"it acts on the server: a capital, ctrl+…, alt+… or F1-F24, not {label_of(key)}")


def _clashes(keys: Keys) -> list[tuple[str, str]]:
    """Keys that would do two things."""
    out = []
    table = [replace(a, keys=keys.get(a.id, a.keys)) for a in ACTIONS if a.available]
    usual = {a.id: a.keys for a in ACTIONS}
    for id_ in keys:
        mine = next(action for action in table if action.id == id_)
        for other in table:
            shared = [key for key in mine.keys if key in other.keys and other.id != id_]
            # One key in two panes is fine where it is usual.
            shared = [key for key in shared if not (key in usual[id_] and key in usual[other.id])]
            if shared and {mine.scope, other.scope} != {"steps", "compare"}:
                out.append((id_, f"{label_of(shared[0])} is the key of {other.id} ({other.help})"))
                break
    return out
