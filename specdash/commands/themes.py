"""``specdash themes``: the colours that can be chosen."""

from __future__ import annotations

import sys

import click

from specdash.commands.folding import tell


@click.command(short_help="The colour themes that can be chosen.")
@click.option("--path", is_flag=True, help="Only print the folder for your own themes.")
def command(path: bool) -> None:
    """List the themes for --theme: ours, yours, and Textual's.

    A theme of your own is a TOML file in the printed folder, called by its name: one line, primary =
    "#7aa2f7", is enough, and a misspelt key is told. Exit code 1: one of them is broken.

    \b
    Examples:
      specdash themes
      specdash themes --path
    """
    from textual.theme import BUILTIN_THEMES

    from specdash.tui.themes import DEFAULT_THEME, load_all, user_folder

    if path:
        click.echo(user_folder())
        return
    themes, problems = load_all()
    for name in sorted(themes):
        click.echo(f"{name}{'  (default)' if name == DEFAULT_THEME else ''}")
    tell("Textual's: " + " ".join(sorted(set(BUILTIN_THEMES) - set(themes))))
    click.echo(f"your own: {user_folder()}/*.toml")
    for problem in problems:
        tell(f"specdash: {problem}", err=True)
    sys.exit(1 if problems else 0)
