"""``specdash help TOPIC``: the pages that come with the program."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable

import click

from specdash.commands.acting import obeys
from specdash.wording import nearest


@click.command(short_help="Pages: first steps, keys, profile, verdict, troubleshooting …")
@click.argument("topic", required=False)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> None:
    """Print the page of TOPIC, or that of a command; without TOPIC the list of pages.

    \b
    Examples:
      specdash help quickstart
      specdash help troubleshooting | grep -A1 capture
    """
    from specdash.commands import COMMANDS
    from specdash.help import TOPICS, WIDEST, page

    if topic is None:
        click.echo("specdash help TOPIC:")
        click.echo("\n".join(f"  {name:<16} {about}" for name, about in TOPICS.items()))
        click.echo("\nspecdash COMMAND --help: the options of a command")
        return
    if topic in TOPICS:
        width = shutil.get_terminal_size((WIDEST, 24)).columns if sys.stdout.isatty() else WIDEST
        _show(page(topic, max(40, width - 1)))
    elif topic in COMMANDS and ctx.parent is not None:
        _help_of(ctx.parent, topic)
    else:
        near = nearest(topic, [*TOPICS, *COMMANDS]) or f"; there are {', '.join(TOPICS)}"
        raise click.UsageError(f"no page {topic}{near}")


def _help_of(parent: click.Context, name: str) -> None:
    group = parent.command
    found = group.get_command(parent, name) if isinstance(group, click.Group) else None
    if found is not None:
        with click.Context(found, info_name=name, parent=parent) as ctx:
            click.echo(found.get_help(ctx))


def _show(lines: Iterable[tuple[bool, str]]) -> None:
    """On a terminal with bold headings, by the pager where it is longer than the screen; else plain."""
    if not obeys(sys.stdout):
        click.echo("\n".join(text for _, text in lines))
        return
    text = "\n".join(click.style(line, bold=True) if heading else line for heading, line in lines)
    if text.count("\n") + 2 > shutil.get_terminal_size().lines:
        click.echo_via_pager(text + "\n")
    else:
        click.echo(text)
