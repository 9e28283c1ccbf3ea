"""What lies below the lower edge of something that scrolls: counted, so that nobody takes a part for all."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from specdash.tui import say


def lines_below(box: Widget) -> str:
    """``PgDn ↓ 3 more lines``, with the key that shows them; nothing where all of it is seen."""
    hidden = round(box.max_scroll_y - box.scroll_y)
    return f"PgDn ↓ {say.plural(hidden, 'more line')}" if hidden > 0 else ""


def watch_below(box: Widget, told: Callable[[], None]) -> None:
    """Call ``told`` after each change of what lies below, once the box is laid out."""

    def moved() -> None:
        box.call_after_refresh(lambda: told() if box.is_attached else None)

    for what in ("scroll_y", "virtual_size", "show_vertical_scrollbar"):
        box.watch(box, what, moved, init=False)
