from __future__ import annotations

import pytest

from specdash.logs.buffer import LogBuffer
from specdash.monitor.state import HostState
from specdash.tui.paint import Span, row, text_of
from specdash.tui.widgets.panel import seen
from specdash.tui.widgets.panelrows import key_rows
from specdash.tui.widgets.situation import by_key, panel_for
from tests.tui import states

TEXT = row(Span("a reason"))
KEY = key_rows(("server.kill", "stops it"))[0]


def test_where_room_is_short_the_row_that_names_a_key_is_the_last_to_go() -> None:
    rows = [TEXT, TEXT, TEXT, KEY, TEXT]
    assert seen(rows, 5) == [0, 1, 2, 3, 4]
    assert seen(rows, 3) == [0, 1, 3]
    assert seen(rows, 1) == [3]
    assert seen([TEXT], 3) == [0, 1, 2], "blank lines below"


def test_blank_rows_give_way_before_words() -> None:
    rows = [TEXT, (), TEXT, TEXT, KEY]
    assert seen(rows, 5) == [0, 1, 2, 3, 4]
    assert seen(rows, 4) == [0, 2, 3, 4]


@pytest.mark.parametrize("state", [states.crashed(), states.stalled()])
def test_each_remedy_is_read_to_its_end_beside_the_keys_on_the_smallest_screen(state: HostState) -> None:
    server = state.servers[0]
    log = LogBuffer()
    log.append(b"a line that is longer than the screen is wide, and then some words more than that\n" * 20)
    panel = panel_for(state, server, acts=True, log=log)
    assert panel is not None
    rows = panel.rows(76)
    shown = " ".join(text_of(rows[at]) for at in seen(rows, 11) if at < len(rows))
    remedies = [remedy for one in server.diagnoses if one.root for remedy in one.remedy]
    assert remedies
    for words in (*map(by_key, remedies), *(text_of(one) for one in rows if one and one[0].tone == "key")):
        assert " ".join(words.split()) in " ".join(shown.split())
