from __future__ import annotations

from specdash.tui.paint import Span, row
from specdash.tui.widgets.panel import seen
from specdash.tui.widgets.panelrows import key_rows

TEXT = row(Span("a reason"))
KEY = key_rows(("server.kill", "stops it"))[0]


def test_where_room_is_short_the_row_that_names_a_key_is_the_last_to_go() -> None:
    rows = [TEXT, TEXT, TEXT, KEY, TEXT]
    assert seen(rows, 5) == [0, 1, 2, 3, 4]
    assert seen(rows, 3) == [0, 1, 3]
    assert seen(rows, 1) == [3]
    assert seen([TEXT], 3) == [0, 1, 2], "blank lines below"
