"""Themes as TOML files: shipped ones, the user's own, and clear words about what is wrong in one."""

from __future__ import annotations

import difflib
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import platformdirs
import tomli
from rich.console import Console
from textual import constants
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from specdash import ownfiles, plainly
from specdash.wording import why

DEFAULT_THEME: Final = "specdash"

_COLOURS: Final = frozenset(
    "primary secondary warning error success accent foreground background surface panel boost".split()
)
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "name": (str,),
    "dark": (bool,),
    "ansi": (bool,),
    "luminosity_spread": (int, float),
    "text_alpha": (int, float),
    "variables": (dict,),
}
_OWN_STYLES: Final = {"dim-style": "none", "faint-style": "none", "bar-style": "none", "flag-style": "bold"}


class ThemeError(ValueError):
    """A theme file that cannot be used; says which file and which key."""


def own_variables(theme: Theme) -> dict[str, str]:
    """The variables of our style sheet, for themes that do not set them."""
    foreground = theme.foreground or ("ansi_default" if theme.ansi else "#e0e0e0")
    quiet = "ansi_bright_black" if theme.ansi else f"{foreground} 30%"
    textuals_own = BUILTIN_THEMES["ansi-dark"].variables if theme.ansi else {}  # its style sheet needs them
    return {
        **textuals_own,
        "dim": foreground if theme.ansi else f"{foreground} 60%",
        "faint": quiet,
        "bar": foreground if theme.ansi else f"{foreground} 45%",
        "key": theme.accent or theme.primary,
        "state-ready": theme.success or theme.primary,
        "state-warn": theme.warning or theme.primary,
        "state-bad": theme.error or theme.primary,
        "orphan": "ansi_magenta" if theme.ansi else "#c58ad6",
        "frame": quiet,
        "frame-focus": theme.primary,
        "hit-foreground": "ansi_black" if theme.ansi else theme.background or "#101418",
        "hit-background": theme.warning or theme.primary,
        **_OWN_STYLES,
        **({"dim-style": "dim", "bar-style": "dim", "flag-style": "bold reverse"} if theme.ansi else {}),
    }


def shipped_folder() -> Path:
    """The folder of the shipped themes: beside this package in a wheel, beside it in a checkout too."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def user_folder() -> Path:
    """Where a person puts their own."""
    return platformdirs.user_config_path("specdash") / "themes"


def load_file(path: Path) -> Theme:
    """Read one theme. Raises ThemeError with the file and the key."""
    try:
        text = ownfiles.text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ThemeError(f"{path}: {why(error)}") from error
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        line, says = plainly.syntax(str(error), text)
        raise ThemeError(f"{path}: line {line}: {says}") from error
    known = {field.name for field in fields(Theme)}
    data.setdefault("name", path.stem)
    for key, value in data.items():
        if key not in known:
            raise ThemeError(f"{path}: unknown key '{key}'{_nearest(key, known)}")
        _check(path, key, value, _TYPES.get(key, (str,)), colour=key in _COLOURS)
    if "primary" not in data:
        raise ThemeError(f"{path}: 'primary' is missing: every theme needs a name and a primary colour")
    _check_variables(path, data.get("variables", {}))
    return Theme(**data)


def _check_variables(path: Path, variables: dict[str, Any]) -> None:
    sample = BUILTIN_THEMES["textual-dark"]
    own = set(own_variables(sample))
    known = own | set(sample.to_color_system().generate()) | set(own_variables(BUILTIN_THEMES["ansi-dark"]))
    for key, value in variables.items():
        if key not in known:
            raise ThemeError(f"{path}: unknown variable '{key}'{_nearest(key, known)}")
        _check(path, f"variables.{key}", value, (str,), colour=key in own and key not in _OWN_STYLES)


def _check(path: Path, key: str, value: object, types: tuple[type, ...], *, colour: bool) -> None:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join(kind.__name__ for kind in types)
        raise ThemeError(f"{path}: '{key}' is {value!r}, not of type {wanted}")
    if colour:
        try:
            Color.parse(str(value))
        except ColorParseError as error:
            raise ThemeError(f"{path}: '{key}' is no colour: {value!r}") from error


def _nearest(key: str, known: set[str]) -> str:
    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def load_all() -> tuple[dict[str, Theme], list[str]]:
    """Every usable theme by name, the user's before ours, and what was wrong with the others."""
    themes: dict[str, Theme] = {}
    problems: list[str] = []
    for folder in (shipped_folder(), user_folder()):
        for path in sorted(folder.glob("*.toml")):
            theme = _load_or_note(path, problems)
            if theme is not None:
                themes[theme.name] = theme
    return themes, problems


def _load_or_note(path: Path, problems: list[str]) -> Theme | None:
    try:
        return load_file(path)
    except ThemeError as error:
        problems.append(str(error))
        return None


def theme_for(system: str | None) -> str:
    """The usual theme of a terminal: with sixteen colours its own ones, for ours would all become white.

    ``system``: as Rich names it, ``standard``, ``256``, ``truecolor``; None: no colours at all.
    """
    return "ansi" if system in ("standard", "windows") else DEFAULT_THEME


def colour_system() -> str | None:
    """What this terminal is taken to show: by TEXTUAL_COLOR_SYSTEM, else by COLORTERM and TERM."""
    return constants.COLOR_SYSTEM if constants.COLOR_SYSTEM != "auto" else Console().color_system


class Outfit(NamedTuple):
    """The colours of a screen."""

    themes: dict[str, Theme]
    theme: str
    """The name of the one to use."""
    troubles: tuple[str, ...]
    """What was wrong with files of the operator's that nobody asked for by name."""


def outfit(name: str | None) -> Outfit:
    """All themes and the one to use: a theme's name, the path of a file, or None for the default.

    Raises ThemeError where there is no such theme, with the reason if a file of that name is broken.
    """
    themes, problems = load_all()
    wanted = name or DEFAULT_THEME
    if wanted.endswith(".toml"):
        theme = load_file(Path(wanted).expanduser())
        themes[theme.name] = theme
        return Outfit(themes, theme.name, tuple(problems))
    if wanted in themes or wanted in BUILTIN_THEMES:
        return Outfit(themes, wanted, tuple(problems))
    broken = [problem for problem in problems if f"{wanted}.toml" in problem]
    if broken:
        raise ThemeError(broken[0])
    hint = _nearest(wanted, set(themes) | set(BUILTIN_THEMES))
    raise ThemeError(f"no theme '{wanted}'{hint}; `specdash themes` lists them")


def resolve(name: str | None) -> tuple[dict[str, Theme], str]:
    """The themes and the name to use; see :func:`outfit`."""
    return outfit(name)[:2]
