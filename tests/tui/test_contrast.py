"""Our themes can be read by everybody: contrast, and states that differ without red and green."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import msgspec
import pytest
from textual.color import Color
from textual.constants import DIM_FACTOR
from textual.theme import Theme

from specdash.tui import app
from specdash.tui.nocolour import contrast
from specdash.tui.paint import Row
from specdash.tui.themes import load_file, own_variables, shipped_folder
from specdash.tui.widgets.gpulines import card_row, half_row, number, summary_rows
from specdash.tui.widgets.planrows import TONES
from tests.screens.photo import photograph
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.reading import settle

AA = 4.5
"""WCAG 2.1, 1.4.3: the least contrast of text."""
AAA = 7.0
TEXTS = ("foreground", "dim", "key", "state-ready", "state-warn", "state-bad", "orphan")
GROUNDS = ("background", "surface")
NAMES = ("specdash", "specdash-light", "deuteranopia", "high-contrast")
DEUTERANOPIA = ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969))
"""Machado, Oliveira and Fernandes 2009, severity 1.0, in linear light."""


def colours(name: str) -> dict[str, Color]:
    theme: Theme = load_file(shipped_folder() / f"{name}.toml")
    known = {**own_variables(theme), **theme.variables}
    known |= {key: str(getattr(theme, key)) for key in ("foreground", "background", "surface", "panel")}
    return {key: Color.parse(value) for key, value in known.items() if not key.endswith("-style")}


def button(part: str) -> str:
    """The variable that the style sheet gives a disabled button; its ground where it sets none of its own."""
    sheet = (Path(app.__file__).parent / "specdash.tcss").read_text(encoding="utf-8")
    own = re.findall(r"\.dialog Button:disabled \{([^}]*)\}", sheet)
    plain = re.findall(r"\.dialog Button \{([^}]*)\}", sheet)
    rules = ";".join((*plain, *own))
    return str(re.findall(rf"(?:^|[\s;]){part}: \$([\w-]+)", rules)[-1])


def linear(color: Color) -> tuple[float, float, float]:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (color.r / 255, color.g / 255, color.b / 255)
    )
    return red, green, blue


def lab(rgb: tuple[float, float, float]) -> tuple[float, float, float]:
    """CIE L*a*b*, white point D65."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(a * max(0.0, b) for a, b in zip(row, rgb, strict=True)) for row in rows]
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (xyz[0] / 0.9505, xyz[1], xyz[2] / 1.089)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def far(one: Color, other: Color) -> float:
    """How far apart two colours are for a deuteranope (CIE76; 2.3 is just to be noticed)."""
    seen = []
    for color in (one, other):
        light = linear(color)
        rows = [sum(a * b for a, b in zip(row, light, strict=True)) for row in DEUTERANOPIA]
        seen.append(lab((rows[0], rows[1], rows[2])))
    return float(sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5)


def test_the_shipped_themes_are_all_judged_here() -> None:
    assert {path.stem for path in shipped_folder().glob("*.toml")} == {*NAMES, "ansi"}


@pytest.mark.parametrize("name", NAMES)
def test_every_text_has_the_contrast_that_wcag_asks_for(name: str) -> None:
    known, least = colours(name), AAA if name == "high-contrast" else AA
    for text in TEXTS:
        for ground in GROUNDS:
            ratio = contrast(known[text], known[ground])
            assert ratio >= least, f"{name}: {text} on {ground} is {ratio:.2f}:1"
    for text, ground in (
        ("foreground", "panel"),  # buttons and inputs
        (button("color"), button("background")),  # what cannot be pressed yet must be read all the same
        ("background", "key"),  # the button in focus
        ("background", "foreground"),  # flags
        ("hit-foreground", "hit-background"),
    ):
        ratio = contrast(known[text], known[ground])
        assert ratio >= least, f"{name}: {text} on {ground} is {ratio:.2f}:1"


@pytest.mark.parametrize("name", NAMES)
def test_bars_and_the_frame_in_focus_can_be_told_from_the_ground(name: str) -> None:
    known = colours(name)
    for part in ("bar", "frame-focus"):
        assert contrast(known[part], known["background"]) >= 3.0, part  # 1.4.11: parts of the picture


@pytest.mark.parametrize("name", NAMES)
def test_what_the_chosen_command_does_can_be_read(name: str) -> None:
    theme: Theme = load_file(shipped_folder() / f"{name}.toml")
    made = {**theme.to_color_system().generate(), **theme.variables}
    ink, laid = (Color.parse(made[f"block-cursor-blurred-{part}"]) for part in ("foreground", "background"))
    ground = Color.parse(str(theme.background)) + laid
    ratio = contrast(ground.blend(ink, DIM_FACTOR), ground)  # the library draws it dim
    assert ratio >= (AAA if name == "high-contrast" else AA), f"{name}: {ratio:.2f}:1"


def test_buttons_and_fields_stand_out_from_the_ground_at_high_contrast() -> None:
    known = colours("high-contrast")
    # Seven to one for the words on it leaves no more than three to one with black: 3 x 7 is all there is.
    assert contrast(known["panel"], known["background"]) == pytest.approx(3.0, abs=0.01)


def test_states_differ_for_who_sees_no_red_and_green() -> None:
    known = colours("deuteranopia")
    for one, other in combinations(("state-ready", "state-warn", "state-bad", "foreground"), 2):
        assert far(known[one], known[other]) >= 30, (one, other)


def test_the_measure_itself() -> None:
    assert contrast(Color.parse("#000"), Color.parse("#fff")) == pytest.approx(21)
    assert far(Color.parse("#ff0000"), Color.parse("#00ff00")) < far(
        Color.parse("#0000ff"), Color.parse("#ffff00")
    )


def faint_words(row: Row) -> list[str]:
    """Letters, figures and question marks in the tone of lines and empty bars."""
    return [span.text for span in row if span.tone == "faint" and re.search(r"[\w?]", span.text)]


def test_the_faintest_tone_is_for_lines_and_never_for_words() -> None:
    unknown = pieces.gpu(0, 12.0)
    card = msgspec.structs.replace(unknown.card, used_mib=None, util=None, power_w=None, temp_c=None)
    blind = msgspec.structs.replace(unknown, card=card)
    rows = [card_row(blind, pieces.NOW, width, ()) for width in (80, 120, 200)]
    rows += [half_row(blind, pieces.NOW, 38, ()), *summary_rows([blind, blind], pieces.NOW, 100, ())]
    assert any("?" in span.text for row in rows for span in row)
    assert [faint_words(row) for row in rows if faint_words(row)] == []
    assert number(None, " W", 0).tone == "dim"
    assert "faint" not in TONES.values()


def test_a_button_that_cannot_be_pressed_yet_has_the_colour_that_is_judged_above() -> None:
    sheet = (Path(app.__file__).parent / "specdash.tcss").read_text(encoding="utf-8")
    (rule,) = re.findall(r"\.dialog Button:disabled \{([^}]*)\}", sheet)
    assert " opacity: 100%" in rule
    assert "text-opacity: 100%" in rule, "the library would draw it with 60 % of that"


@pytest.mark.parametrize(
    ("keys", "front"),
    [((), "*"), (("question_mark",), "Page"), (("colon", "down"), "CommandList, CommandInput")],
)
async def test_at_high_contrast_every_word_as_it_is_painted_has_seven_to_one(
    keys: tuple[str, ...], front: str, make_app: Make
) -> None:
    application = make_app(fakes.source(states.stalled()), theme="high-contrast")
    async with application.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        places = [widget.region for widget in application.screen.query(front)]
        read = {
            (cell.ink.split()[-1], cell.ground)
            for y, line in enumerate(photograph(application))
            for x, cell in enumerate(line)
            if cell.char.isalnum() and any(place.contains(x, y) for place in places)
        }
        assert len(read) > 2
        faint = [pair for pair in read if contrast(*map(Color.parse, pair)) < AAA]
        assert faint == []
