"""Every command's help ends with examples, and each of them could be given as it stands."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from specdash.cli import root
from specdash.commands import COMMANDS
from tests.commands.examples import check_command_line


def command_named(name: str) -> click.Command:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    return found


WHOLE: list[tuple[str, ...]] = [(name,) for name in COMMANDS]
PARTS: list[tuple[str, ...]] = [
    (name, part)
    for name in COMMANDS
    for found in [command_named(name)]
    if isinstance(found, click.Group)
    for part in found.commands
]


@pytest.mark.parametrize("words", [*WHOLE, *PARTS], ids=" ".join)
def test_help_ends_with_examples_that_parse(words: tuple[str, ...]) -> None:
    said = CliRunner().invoke(root, [*words, "--help"])
    assert said.exit_code == 0
    head, examples, rows = said.output.partition("\n  Examples:\n")
    assert examples, said.output
    assert "Options:" in head
    lines = [line.strip() for line in rows.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 4
    for line in lines:
        assert re.search(rf"\bspecdash {' '.join(words)}\b", line)
        check_command_line(line)


def test_an_example_that_cannot_be_given_is_found() -> None:
    for wrong in (
        "specdash klil x",
        "specdash kill",
        "specdash kill x --dryrun",
        "specdash demo --scenario no",
    ):
        with pytest.raises(AssertionError):
            check_command_line(wrong)
