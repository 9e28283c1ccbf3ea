"""The operator's own keys: what is taken, and what is refused with file, key and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from specdash.commands.keys import command as keys_command
from specdash.tui import keymap
from specdash.tui.actions import ACTIONS, BY_ID
from specdash.tui.keymap import adopt, changed, key_of, label_of, load
from specdash.tui.paint import text_of
from specdash.tui.screens.help import help_rows
from specdash.tui.widgets.alerts import help_row
from specdash.tui.widgets.choices import strip_rows
from specdash.tui.widgets.footer import footer_row
from specdash.tui.widgets.linkpanels import lost_row
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.situation import panel_for
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle


@pytest.fixture(autouse=True)
def usual_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "keys.toml"
    monkeypatch.setattr(keymap, "place", lambda: path)
    yield path
    adopt({})


def test_without_a_file_every_key_is_the_usual_one(usual_keys: Path) -> None:
    assert load().keys == {}
    assert load().problems == ()
    assert changed() == {}


def test_keys_are_read_as_a_person_writes_them_and_labelled_as_one_reads_them() -> None:
    for text, name in {
        "/": "slash", "K": "K", "?": "question_mark", "ctrl+f": "ctrl+f", "Ctrl+F": "ctrl+f",
        "PgDn": "pagedown", "esc": "escape", "space": "space", " ": "space", "f5": "f5", "shift+k": "K",
        "shift+tab": "shift+tab",
        "alt+x": "alt+x", "[": "left_square_bracket",
    }.items():  # fmt: skip
        assert key_of(text) == name
    assert [label_of(key) for key in ("slash", "K", "ctrl+f", "pagedown", "up", "f5")] == [
        "/", "K", "ctrl+f", "PgDn", "↑", "f5",
    ]  # fmt: skip


def test_own_keys_are_everywhere_where_keys_are_named(usual_keys: Path) -> None:
    adopt({"evidence": ("f7",), "help": ("f1",), "conn.retry": ("f5",), "pane.strip": ("f9",)})
    stalled = panel_for(states.stalled(), states.stalled().servers[0])
    assert stalled is not None
    for line in (stalled.below, help_row(), lost_row(states.lost(), 120)):
        assert re.search(r"\bf[157]\b", text_of(line)), text_of(line)
    assert text_of(strip_rows((states.two_servers(),), None, 120, 4)[0]).startswith(" f9 ")
    usual_keys.write_text('log.find = ["ctrl+f", "F3"]\n[server]\nkill = "ctrl+k"\n')
    adopt(load().keys)
    assert changed() == {"log.find": "ctrl+f,f3", "server.kill": "ctrl+k"}
    assert "ctrl+f f3 find" in text_of(footer_row(200))
    assert "ctrl+k" in "\n".join(text_of(line) for line in help_rows(120))
    plain = CliRunner().invoke(keys_command, []).output
    assert (
        "ctrl+k   server.kill        stop the server by its ladder, verify its GPUs  [hard]  (usually K)\n"
        in plain
    )
    assert str(usual_keys) in plain


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("log.find =", "no value that TOML knows"),
        ('\nlog.fimd = "x"', "line 2: log.fimd: there is no such action (did you mean log.find?)"),
        ('[server]\n\nkil = "x"', "line 3: server.kil: there is no such action (did you mean server.kill?)"),
        ('log.find = "entr"', "line 1: log.find: there is no key 'entr' (did you mean 'enter'?)"),
        ('log.find = "hyper+x"', "there is no key 'hyper+x'"),
        ("log.find = 3", "give it a key"),
        ("log.find = []", "give it a key"),
        ('# mine\nlog.find = "f"', "line 2: log.find: f is the key of log.follow"),
        ('log.find = "f6"\nlog.wrap = "f6"', "line 1: log.find: f6 is the key of log.wrap"),
        ('server.kill = "e"', "it acts on the server, and e only looks (log.error)"),
        ('server.kill = "enter"', "it acts on the server, and enter only looks (detail)"),
        ('server.kill = "ü"', "it acts on the server: a capital, ctrl+…"),
        ('log.find = "K"', "it only looks, and K acts on the server (server.kill)"),
        ('server.kill = "G"', "it acts on the server, and G only looks (move.bottom)"),
        ('server.kill = "R"', "R is the key of server.restart"),
        ('log.find = "ctrl+c"', "ctrl+c leaves or copies"),
        ('log.find = "ctrl+m"', "ctrl+m is enter to a terminal"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line_and_the_usual_keys_stay(
    usual_keys: Path, text: str, told: str
) -> None:
    usual_keys.write_text(text, encoding="utf-8")
    found = load()
    assert found.keys == {}
    assert len(found.problems) >= 1
    assert str(usual_keys) in found.problems[0]
    assert told in found.problems[0]
    result = CliRunner().invoke(keys_command, [])
    assert result.exit_code == 1
    assert "K        server.kill        stop the server" in result.output


def test_keys_may_be_swapped_among_those_that_look_and_among_those_that_act(usual_keys: Path) -> None:
    usual_keys.write_text(
        'log.error = "E"\nlog.error_previous = "e"\nserver.kill = "R"\nserver.restart = "K"\n'
    )
    assert load().problems == ()
    assert load().keys["server.kill"] == ("R",)


async def test_the_new_key_works_the_old_one_does_not_and_a_mistake_is_said_on_the_screen(
    make_app: Make, usual_keys: Path
) -> None:
    adopt({"help": ("f1",), "log.follow": ("F",)})
    app = make_app(fakes.source(states.serving()), troubles=["keys.toml, line 3: no such action"])
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "keys.toml, line 3" in screen_text(app)
        assert board.query_one(LogPane).follow
        await pilot.press("f")
        assert board.query_one(LogPane).follow
        await pilot.press("F")
        assert not board.query_one(LogPane).follow
        await pilot.press("f1")
        await pilot.pause()
        assert "f1" in screen_text(app)
        await pilot.press("f1")
        await pilot.pause()
        assert app.screen is board, "the key that opened it closes it"


def test_every_usual_key_is_one_that_could_be_written() -> None:
    for action in ACTIONS:
        assert BY_ID[action.id] == action
        for key in action.keys:
            assert label_of(key) in "↑↓←→" or key_of(label_of(key)) == key
