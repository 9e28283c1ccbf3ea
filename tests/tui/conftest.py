from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from specdash.source import Source
from specdash.tui import files, keymap, themes
from specdash.tui.app import SpecdashApp

Make = Callable[..., SpecdashApp]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the person who runs the tests is read or written; colours do not depend on them."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setattr(files, "state_folder", lambda: folder)
    monkeypatch.setattr(themes, "user_folder", lambda: tmp_path / "themes")
    monkeypatch.setattr(keymap, "place", lambda: tmp_path / "keys.toml")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TZ", "UTC")
    return folder


@pytest.fixture
def make_app() -> Make:
    """An app over sources, in our colours."""

    def make(
        *sources: Source,
        theme: str | None = None,
        ascii_only: bool = False,
        quiet: bool = False,
        hint: str = "",
        troubles: Sequence[str] = (),
    ) -> SpecdashApp:
        known, name = themes.resolve(theme)
        return SpecdashApp(
            sources,
            themes=known,
            theme=name,
            ascii_only=ascii_only,
            quiet=quiet,
            hint=hint,
            troubles=troubles,
        )

    return make
