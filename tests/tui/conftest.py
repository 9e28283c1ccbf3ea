from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import textual.app
import textual.pilot
from textual._wait import wait_for_idle

from specdash.operations.which import Wanted
from specdash.session.source import Source
from specdash.tui import files, keymap, themes
from specdash.tui.app import SpecdashApp
from specdash.tui.story import Story
from tests.tui.reading import lasting
from tests.tui.still import until_still

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


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual calls an app idle that uses no CPU for a moment: a busy machine may just keep it waiting."""

    async def wait(*args: float) -> None:
        await wait_for_idle(*args)
        await until_still()

    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", wait)


@pytest.fixture(autouse=True)
def said_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message goes before a test has looked."""
    lasting(monkeypatch)


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
        prefer: Wanted | None = None,
        story: Story | None = None,
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
            prefer=prefer,
            story=story,
        )

    return make
