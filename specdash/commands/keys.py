"""``specdash keys``: the one table of keys."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from specdash.commands.folding import tell

if TYPE_CHECKING:
    from specdash.tui.actions import Action

SCHEMA = 1
ID_CELLS = 18


@click.command(short_help="All keys, by scope and risk.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(as_json: bool) -> None:
    """Every key of the dashboard, what it does, and whether it can change anything.

    read: only looks. soft: costs the server something; B shows its plan first, T asks for its one token at
    once. hard: changes the server, and shows what it will do before it does it.

    Your own keys stand in keys.toml in the config folder, one line for each action, by its name as it
    stands here beside its key: log.find = "ctrl+f". Keys that act and keys that look never change places.
    Exit code 1: that file has a mistake, and nothing of it is used.

    \b
    Examples:
      specdash keys
      specdash keys --json
    """
    from specdash.tui.actions import ACTIONS, BY_ID, GROUP_TITLES
    from specdash.tui.keymap import adopt, load

    own = load()
    adopt(own.keys)
    if as_json:
        keys = [_document(BY_ID[usual.id], usual) for usual in ACTIONS]
        click.echo(json.dumps({"schema": SCHEMA, "keys": keys}, ensure_ascii=False, indent=1))
    else:
        for group, title in GROUP_TITLES.items():
            click.echo(title)
            for usual in ACTIONS:
                if usual.group == group:
                    tell(_line(BY_ID[usual.id], usual))
        state = "" if own.keys else "  (not used)" if own.problems else "  (there is none)"
        click.echo(f"your own: {own.path}{state}")
    for problem in own.problems:
        tell(f"specdash: {problem}; the usual keys stay", err=True)
    sys.exit(1 if own.problems else 0)


def _document(action: Action, usual: Action) -> dict[str, object]:
    return {
        "id": action.id,
        "keys": list(action.keys),
        "usual_keys": list(usual.keys),
        "label": action.label,
        "scope": action.scope,
        "risk": action.risk,
        "group": action.group,
        "help": action.help,
        "available": action.available,
    }


def _line(action: Action, usual: Action) -> str:
    where = "" if action.scope in ("any", "log") else f"  ({action.scope})"
    later = "" if action.available else "  (later)"
    risk = "" if action.risk == "read" else f"  [{action.risk}]"
    own = f"  (usually {usual.label})" if action.keys != usual.keys else ""
    return f"  {action.label:<8} {action.id:<{ID_CELLS}} {action.help}{where}{risk}{later}{own}"
