"""Whether a command line that stands in a text could be given as it stands."""

from __future__ import annotations

import shlex

import click

from specdash.cli import root
from specdash.commands import COMMANDS

_SHELL = frozenset({"|", ">", "<", "2>", "2>&1", "&&", ";"})


def check_command_line(line: str, *, whole: bool = True) -> None:
    """Fails where the command, an option or a value of it does not exist. Nothing is run.

    ``whole`` false: it is only named in a sentence, and may lack its arguments.
    """
    words = shlex.split(line, comments=True)
    if "specdash" in words[1:]:
        words = words[words.index("specdash") if words[0] != "specdash" else 0 :]
    assert words[0] == "specdash", line
    ends = [number for number, word in enumerate(words) if word in _SHELL]
    words = words[1 : ends[0] if ends else None]
    assert words[0] in COMMANDS or words[0] == "COMMAND", line
    if any(word.isupper() and word not in "TUKCRPB" for word in words):
        return  # a usage, with words to be filled in
    command: click.Command | None = root
    context = click.Context(root, info_name="specdash")
    while isinstance(command, click.Group) and words and command.get_command(context, words[0]):
        command = command.get_command(context, words.pop(0))
    assert command is not None
    try:
        command.make_context("specdash", words, parent=context)
    except click.ClickException as error:
        missing = isinstance(error, click.MissingParameter)
        if (missing and not whole) or "does not exist" in error.format_message():
            return  # the latter: a file of the reader's
        raise AssertionError(f"{line}: {error.format_message()}") from None
