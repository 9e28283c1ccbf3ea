"""The pages of ``specdash help``: whole, plain, and never naming what does not exist."""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import specdash
from specdash.cli import root
from specdash.commands import COMMANDS
from specdash.engines.common import default_book
from specdash.engines.loader import parse_own
from specdash.help import TOPICS, WIDEST, page, source
from specdash.help.tables import FIGURES, ROOMS, TABLES
from specdash.profile.document import Profile
from specdash.profile.loading import parse
from specdash.remote.errors import FAILURES
from specdash.tui.actions import ACTIONS
from tests.commands.examples import check_command_line

ROOM = Path(specdash.__file__).parent
KEY = re.compile(r"`(\S|ctrl\+\S|enter|esc|tab|space|PgUp|PgDn)`")
NAMED = re.compile(r"`(specdash [^`]+)`|^ {4}(specdash .+)$", re.MULTILINE)
OPTION = re.compile(r"`(--[a-z-]+)[^`]*`")


def shown(*arguments: str) -> str:
    said = CliRunner().invoke(root, ["help", *arguments])
    assert said.exit_code == 0, said.output
    return said.output


@pytest.mark.parametrize("topic", TOPICS)
def test_every_page_prints_plain_and_within_a_hundred_columns(topic: str) -> None:
    text = shown(topic)
    assert "{{" not in text
    assert all(character.isprintable() or character == "\n" for character in text)
    too_long = [line for line in text.splitlines() if len(line) > WIDEST]
    assert too_long == []


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_fits_a_narrow_terminal_without_stray_words(topic: str) -> None:
    code = {line.strip() for line in source(topic).splitlines() if line.startswith("    ")}
    lines = [text for _, text in page(topic, 60) if text.strip() not in code]
    assert [line for line in lines if len(line) > 60 and " " in line.strip()] == []
    if topic == "verdict":
        assert lines[2].endswith("a line is not progress. Each")
        assert lines[3].startswith("  phase has its own signs of life")


@pytest.mark.parametrize("topic", TOPICS)
def test_every_command_that_a_page_names_can_be_given_as_it_stands(topic: str) -> None:
    for quoted, shown_ in NAMED.findall(source(topic)):
        check_command_line(quoted or shown_, whole=not quoted)


def test_every_command_of_the_readme_can_be_given_as_it_stands() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOM.parent / "README.md").read_text("utf-8"), re.M | re.S)
    commands = [line for block in blocks for line in re.findall(r"(?:^|/)(specdash .+)$", block, re.M)]
    assert len(commands) > 12
    for line in commands:
        check_command_line(line)


def test_the_readme_names_every_key_that_acts_and_no_key_or_option_that_is_none() -> None:
    text = (ROOM.parent / "README.md").read_text("utf-8")
    there = [action for action in ACTIONS if action.available]
    keys = set(KEY.findall(text))
    assert keys - {"`"} <= {label for action in there for label in action.label.split()}
    assert {action.label for action in there if action.risk != "read"} <= keys
    assert set(OPTION.findall(text)) <= {name for command in COMMANDS for name in _options(command)}


@pytest.mark.parametrize("topic", TOPICS)
def test_every_key_and_option_that_a_page_names_exists(topic: str) -> None:
    labels = {label for action in ACTIONS if action.available for label in action.label.split()}
    assert set(KEY.findall(source(topic))) <= labels
    known = {name for command in COMMANDS for name in _options(command)}
    assert set(OPTION.findall(source(topic))) <= known


def _options(command: str) -> set[str]:
    found = root.get_command(root.make_context("specdash", ["keys"]), command)
    assert found is not None
    return {name for parameter in found.params for name in parameter.opts}


def test_the_list_names_every_page_and_every_page_has_its_file() -> None:
    assert all(f"  {topic} " in shown() for topic in TOPICS)
    assert {path.stem for path in (ROOM / "help").glob("*.md")} == set(TOPICS)


def test_every_table_and_figure_has_its_place_on_a_page() -> None:
    used = {name for topic in TOPICS for name in re.findall(r"\{\{([a-z ]+)\}\}", source(topic))}
    assert used == set(TABLES) | set(FIGURES)


def test_what_stands_in_the_code_stands_on_the_pages() -> None:
    assert all(f" {action.help}" in shown("keys") for action in ACTIONS if action.available)
    fields = [name for table in Profile.__struct_fields__ for name in (table,)]
    assert all(name in shown("profile") for name in fields)
    text = shown("troubleshooting")
    assert [key for key in default_book().meanings if f"[{key}]" not in text] == []
    assert [key for key in FAILURES if f"[{key}]" not in text] == ["ssh_connection_dead"]  # all facts
    assert "45 seconds make it suspect, 120 a stall" in shown("verdict")


def test_every_quoted_message_is_one_that_the_program_prints() -> None:
    quoted = [line[2:] for line in source("troubleshooting").splitlines() if line.startswith("> ")]
    assert len(quoted) > 8
    code = [path.read_text("utf-8") for path in ROOM.rglob("*.py")]
    silent = [
        message
        for message in quoted
        if not any(message in text for file in code if message in file for text in _literals(file))
    ]
    assert silent == []


@functools.cache
def _literals(code: str) -> list[str]:
    """The texts in a file; neither comments nor docstrings, which nobody prints."""
    nodes = list(ast.walk(ast.parse(code)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in texts if isinstance(node.value, str)]


def test_the_page_on_security_names_every_place_that_is_written_on_a_host() -> None:
    texts = _literals((ROOM / "agent/host.py").read_text("utf-8"))
    places = [text.replace("%d", "UID") for text in texts if re.match(r"[/~].*specdash", text)]
    assert len(places) == 6
    assert [place for place in places if place not in source("security")] == []


def test_the_examples_of_the_pages_pass_our_own_checks() -> None:
    engine = "\n".join(re.findall(r"^ {4}(.*)$", source("engines"), re.MULTILINE))
    toy = engine[engine.index("name = ") : engine.index("specdash log")]
    assert parse_own("toy.toml", toy).name == "toy"
    written = "\n".join(re.findall(r"^ {4}(?!specdash)(.*)$", source("profile"), re.MULTILINE))
    assert parse(written).variants["steps-2"].server == "main"
    campaign = re.findall(r"--campaign (\S+)", source("bench"))
    assert [
        name for names in campaign for name in names.split(",") if name not in parse(written).variants
    ] == []
    book = "\n".join(re.findall(r"^ {4}(?!specdash)(.*)$", source("runbooks"), re.MULTILINE))
    assert len(parse(f"{written}\n{book}").runbooks["night"].steps) == 4


def test_every_file_that_the_walks_name_exists() -> None:
    top = ROOM.parent
    named = set(re.findall(r"\b(?:specdash|tests)/[\w/.]+\w", source("contributing")))
    walked = {name for name in named if "NAME" not in name and "/x/" not in name}
    assert len(walked) > 10
    assert [name for name in sorted(walked) if not (top / name).exists()] == []
    assert source("contributing").count("\n") <= 80


def test_the_picture_of_the_house_has_every_room_and_what_it_may_touch() -> None:
    there = {path.parent.name for path in ROOM.glob("*/__init__.py")}
    assert sorted(ROOMS) == sorted(there)
    text = shown("contributing")
    for name in ROOMS:
        assert re.search(rf"^  {name} +\S[^\n]+\.\n {{14}}touches [^\n]+\.$", text, re.MULTILINE), name


def test_a_command_has_its_page_too_and_a_mistyped_one_is_guessed() -> None:
    assert "Usage: specdash kill" in shown("kill").replace("root", "specdash")
    said = CliRunner().invoke(root, ["help", "verdit"])
    assert said.exit_code == 2
    assert "no page verdit; did you mean verdict?" in said.output


@pytest.mark.parametrize(
    ("lines", "term", "paged"), [(500, "xterm", False), (10, "xterm", True), (10, "dumb", False)]
)
def test_on_a_terminal_only_what_is_longer_than_the_screen_is_paged(
    lines: int, term: str, paged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    monkeypatch.setattr("click.echo_via_pager", lambda text: told.append(True))
    monkeypatch.setattr("click.echo", lambda text: told.append(False))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "80")
    from specdash.commands import help as command

    command._show(page("verdict"))
    assert told == [paged]


def test_every_lost_connection_has_its_remedy() -> None:
    rows = shown("troubleshooting").partition("No connection")[2].partition("What a log")[0].splitlines()
    entries = [number for number, line in enumerate(rows) if re.search(r"\[(ssh|local)_\w+\]$", line)]
    assert len(entries) == len(FAILURES) - 1
    assert [rows[number] for number in entries if not rows[number + 1].startswith("    → ")] == []
