from __future__ import annotations

from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from specdash.tui import themes
from specdash.tui.themes import ThemeError, load_all, load_file, own_variables, resolve, shipped_folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(themes, "user_folder", lambda: tmp_path)
    return tmp_path


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def test_the_shipped_themes_load_and_set_every_colour_of_ours(own: Path) -> None:
    found, problems = load_all()
    assert problems == []
    assert {"specdash", "ansi"} <= set(found)
    for name in ("specdash", "ansi"):
        colours = {key for key in own_variables(found[name]) if not key.endswith("-style")}
        ours = {key for key in own_variables(BUILTIN_THEMES["nord"]) if not key.endswith("-style")}
        assert ours <= set(found[name].variables), name
        assert ours <= colours


def test_the_themes_lie_in_the_checkout_or_inside_the_package(tmp_path: Path) -> None:
    assert (shipped_folder() / "specdash.toml").is_file()
    assert shipped_folder().name == "themes"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("primary = ", "Invalid value"),
        ("dark = true", "'primary' is missing"),
        ('primary = "#12345z"', "'primary' is no colour"),
        ('primary = "#123456"\nprimry = "#123456"', "unknown key 'primry' (did you mean 'primary'?)"),
        ('primary = "#123456"\ndark = "yes"', "'dark' is 'yes', not of type bool"),
        ("primary = 3", "'primary' is 3, not of type str"),
        (
            'primary = "#123456"\n[variables]\norphn = "red"',
            "unknown variable 'orphn' (did you mean 'orphan'?)",
        ),
        ('primary = "#123456"\n[variables]\norphan = "rod"', "'variables.orphan' is no colour: 'rod'"),
    ],
)
def test_a_broken_theme_is_named_with_its_file_and_key(own: Path, text: str, told: str) -> None:
    path = write(own, "mine", text)
    with pytest.raises(ThemeError) as error:
        load_file(path)
    assert str(path) in str(error.value)
    assert told in str(error.value)


def test_a_broken_theme_of_the_user_does_not_stop_the_others(own: Path) -> None:
    write(own, "broken", "primary = 1")
    write(own, "good", 'primary = "#445566"')
    found, problems = load_all()
    assert "good" in found
    assert "specdash" in found
    assert len(problems) == 1
    assert resolve("good")[1] == "good"
    with pytest.raises(ThemeError, match="not of type str"):
        resolve("broken")


def test_a_theme_is_chosen_by_name_or_by_file_and_an_unknown_one_names_the_nearest(own: Path) -> None:
    path = write(own, "x", 'name = "moss"\nprimary = "#225522"')
    assert resolve(None)[1] == "specdash"
    assert resolve("nord")[1] == "nord"
    assert resolve(str(path))[1] == "moss"
    with pytest.raises(ThemeError, match="did you mean 'specdash'"):
        resolve("specdsh")
