"""The line in which a search or a filter is typed."""

from __future__ import annotations

from typing import Final, Literal

from textual.widgets import Input

Asks = Literal["find", "filter"]

_SAYS: Final[dict[Asks, str]] = {
    "find": "find: text or /regex/; capitals count where there are any",
    "filter": "show only: text, /regex/, !without, @error, @warning, @TP3; empty: all",
}


class LogPrompt(Input):
    """One line, asked for one of two things; it keeps what was typed for each."""

    asks: Asks = "find"

    def ask(self, what: Asks, value: str) -> None:
        """Ask for this; ``value``: what holds now."""
        self.asks = what
        self.placeholder = _SAYS[what]
        self.value = value
        self.action_select_all()
        self.focus()
