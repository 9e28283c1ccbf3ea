from __future__ import annotations

from pathlib import Path

import click
import pytest
from rich.segment import Segment
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES

from specdash.commands.screen import Stage
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from specdash.tui.themes import (
    ThemeError,
    load_all,
    load_file,
    outfit,
    own_variables,
    resolve,
    shipped_folder,
)
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle, until


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
    names = ("specdash", "specdash-light", "deuteranopia", "high-contrast", "ansi")
    assert set(names) <= set(found)
    for name in names:
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
        ("primary = ", "no value that TOML knows"),
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


def test_a_theme_that_is_none_is_refused_on_a_plain_terminal_too(own: Path) -> None:
    with pytest.raises(click.UsageError, match="did you mean 'specdash'"):
        Stage(plain=True, theme="specdsh", ascii_only=False)
    write(own, "broken", "primary = 1")
    with pytest.raises(click.UsageError, match="not of type str"):
        Stage(plain=True, theme="broken", ascii_only=False)


def test_a_terminal_of_sixteen_colours_keeps_its_own_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [themes.theme_for(system) for system in ("standard", "256", "truecolor", None)] == [
        "ansi",
        "specdash",
        "specdash",
        "specdash",
    ]
    monkeypatch.setattr("textual.constants.COLOR_SYSTEM", "standard")
    assert themes.theme_for(themes.colour_system()) == "ansi"


async def test_a_broken_file_that_nobody_asked_for_is_said_on_the_screen(own: Path, make_app: Make) -> None:
    write(own, "broken", "primary = 1")
    app = make_app(fakes.source(states.serving()), troubles=outfit(None).troubles)
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        assert "broken.toml: 'primary' is 1" in screen_text(app)


async def test_each_host_has_the_colours_of_its_profile_until_others_are_chosen(make_app: Make) -> None:
    known, name = resolve(None)
    two = [fakes.source(states.serving()), fakes.source(states.stalled())]
    app = SpecdashApp(two, themes=known, theme=name, host_themes=[None, "high-contrast"])
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert app.theme == "specdash"
        board.action_choose(1)
        await settle(pilot)
        assert app.theme == "high-contrast"
        board.action_choose(0)
        await settle(pilot)
        assert app.theme == "specdash"
        app.use_theme("specdash-light")
        board.action_choose(1)
        await settle(pilot)
        assert app.theme == "specdash-light"
    wrong = SpecdashApp(two, themes=known, theme=name, host_themes=["nosuch", None])
    async with wrong.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "the profile's theme 'nosuch' is not known" in screen_text(wrong)


async def test_the_palette_shows_a_theme_while_it_is_looked_at(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for keys, after in ((("escape",), "specdash"), (("enter",), "specdash-light")):
            await pilot.press("colon", *"theme specdash-light")
            await until(pilot, "theme specdash-light")
            await pilot.press("down")
            for _ in range(3000):
                if app.theme == "specdash-light":
                    break
                await pilot.pause(0.02)
            assert app.theme == "specdash-light", "it is shown before it is chosen"
            await settle(pilot)
            box = app.screen.query_one("#--container")
            assert box.styles.background.hex == app.get_css_variables()["background"].upper(), "its box, too"
            await pilot.press(*keys)
            await settle(pilot)
            assert app.theme == after


@pytest.mark.parametrize("theme", ["specdash", "specdash-light", "ansi"])
async def test_no_color_means_no_colour_not_even_grey(
    theme: str, make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(fakes.source(states.stalled()), theme=theme)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        strips = app.screen._compositor.render_strips()
        painted = [
            strip.apply_filter(one, app.background_colors[0])
            for strip in strips
            for one in app.get_line_filters()
        ]
        segments: list[Segment] = [segment for strip in painted for segment in strip]
        styles = [segment.style for segment in segments if segment.style is not None]
        assert styles
        assert not [style for style in styles if style.color is not None or style.bgcolor is not None]
        assert [s.text for s in segments if s.style and s.style.bold and "STALLED" in s.text]
        assert [s.text for s in segments if s.style and s.style.dim], "what may be overlooked is dim"
        assert Strip(segments).text
