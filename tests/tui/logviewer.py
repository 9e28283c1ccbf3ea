"""A log view and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import App, ComposeResult

from specdash.logs.buffer import LogBuffer
from specdash.tui.paint import text_of
from specdash.tui.themes import own_variables
from specdash.tui.widgets.logreader import LogReader
from specdash.tui.widgets.painted import TonedScreen
from tests.tui.pieces import NOW


class Viewer(App[None]):
    """A log view and nothing else."""

    CSS_PATH = "../../specdash/tui/specdash.tcss"
    CSS = "#log, #log:focus { border: none; padding: 0; }"

    def __init__(self, buffer: LogBuffer) -> None:
        super().__init__()
        self.buffer = buffer
        self.told: list[str] = []

    def on_log_search_told(self, event: LogReader.Told) -> None:
        self.told.append(text_of(event.words))

    def get_default_screen(self) -> TonedScreen:
        return TonedScreen()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return own_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield LogReader(id="log")

    def on_mount(self) -> None:
        self.look()

    def look(self) -> None:
        self.view.look(self.buffer, NOW)

    @property
    def view(self) -> LogReader:
        return self.query_one(LogReader)

    @property
    def shown(self) -> list[str]:
        width = self.view.cells
        return [strip.text[:width].rstrip() for strip in self.screen._compositor.render_strips()]


def numbered(numbers: Iterable[int]) -> bytes:
    return b"".join(b"line %d\n" % number for number in numbers)


def filled(many: int = 100) -> LogBuffer:
    buffer = LogBuffer()
    buffer.append(numbered(range(1, many + 1)))
    return buffer
