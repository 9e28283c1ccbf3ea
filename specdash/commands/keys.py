"""``specdash keys``: the one table of keys."""

from __future__ import annotations

import json

import click

SCHEMA = 1


@click.command(short_help="All keys, by scope and risk.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(as_json: bool) -> None:
    """Every key of the dashboard, what it does, and whether it can change anything.

    read: only looks. soft: costs the server something, and asks first. hard: changes the server, and shows
    what it will do before it does it.
    """
    from specdash.tui.actions import ACTIONS, GROUP_TITLES

    if as_json:
        keys = [
            {
                "id": action.id,
                "keys": list(action.keys),
                "label": action.label,
                "scope": action.scope,
                "risk": action.risk,
                "group": action.group,
                "help": action.help,
                "available": action.available,
            }
            for action in ACTIONS
        ]
        click.echo(json.dumps({"schema": SCHEMA, "keys": keys}, ensure_ascii=False, indent=1))
        return
    for group, title in GROUP_TITLES.items():
        click.echo(f"{title}")
        for action in ACTIONS:
            if action.group == group:
                where = "" if action.scope in ("any", "log") else f"  ({action.scope})"
                later = "" if action.available else "  (later)"
                risk = "" if action.risk == "read" else f"  [{action.risk}]"
                click.echo(f"  {action.label:<8} {action.help}{where}{risk}{later}")
