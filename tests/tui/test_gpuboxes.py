"""A box per card: nothing is clipped, what is odd stands out in a word, and the grid is straight."""

import msgspec
import pytest
from textual.geometry import Size

from specdash.monitor.state import Gpu, HostState
from specdash.tui.paint import Span, text_of, width_of
from specdash.tui.widgets.gpuboxes import BOX_ROWS, box_rows, per_line, rows_needed
from specdash.tui.widgets.gpulines import memory_bar
from specdash.tui.widgets.gpus import boxes_fit
from tests.tui import panes, pieces, states


def boxes(state: HostState, width: int) -> list[str]:
    lagging = state.servers[0].lagging
    return [text_of(line) for line in box_rows(state.gpus, state.now, width, lagging)]


@pytest.mark.parametrize("width", [160, 163, 200, 237])
@pytest.mark.parametrize("many", [1, 2, 5, 8, 11, 16])
def test_every_row_of_boxes_ends_at_the_right_edge(many: int, width: int) -> None:
    state = msgspec.structs.replace(states.serving(), gpus=pieces.cards(many, 122.0))
    rows = box_rows(state.gpus, state.now, width)
    assert len(rows) == rows_needed(many, width)
    full = rows[: BOX_ROWS * (many // per_line(many, width))]
    assert {width_of(line) for line in full} == {width}


def test_each_card_says_memory_work_clock_and_owner() -> None:
    shown = boxes(states.serving(), 200)
    assert shown[0].count("H200") == 8
    assert shown[1].count(" GiB  87 %") == 8
    assert "97%      58°    412 W" in shown[3]
    assert shown[4].count("1980 MHz of 1980") == 8
    assert shown[6].count("ok ") == 8
    assert "TP7 4250" in shown[7]


def test_a_long_name_loses_its_last_words_not_half_of_one() -> None:
    gpu = pieces.gpu(0, 1.0, name="NVIDIA RTX PRO 6000 Blackwell Server Edition")
    state = msgspec.structs.replace(states.serving(), gpus=(gpu,) * 8)
    assert boxes(state, 200)[0].startswith("╭─ 0 RTX PRO 6000 ─")
    assert (
        "RTX PRO 6000 Blackwell Server Edition" in boxes(msgspec.structs.replace(state, gpus=(gpu,)), 200)[0]
    )


def test_what_is_odd_about_a_card_is_a_word_in_its_box_even_where_it_is_narrow() -> None:
    for width in (160, 200):
        text = "\n".join(boxes(panes.odd_cards(), width))
        for word in (
            "ORPHAN 74.2 GiB",
            "↓ power cap",
            "↓ hardware ther",
            "GPU is lost",
            "last answer 41 s",
            "◀ lags",
        ):
            assert word in text


def test_the_frame_of_an_odd_card_has_the_tone_of_what_is_odd() -> None:
    state = panes.odd_cards()
    edges = [span for span in box_rows(state.gpus, state.now, 200)[0] if span.text.startswith("╭")]
    assert [edge.tone for edge in edges[:4]] == ["faint", "orphan", "warn", "bad"]


def test_the_chosen_card_is_marked_and_a_click_on_any_row_opens_its_sheet() -> None:
    state = states.serving()
    rows = box_rows(state.gpus, state.now, 200, marked=2)
    assert [span.text for span in rows[0] if span.tone == "flag"] == [" 2 "]
    assert {span.action for line in rows for span in line} == {f"detail('gpu', {at})" for at in range(8)}


def _drawn(gpu: Gpu, cells: int = 20) -> list[tuple[str, str]]:
    return [(span.text, span.tone) for span in memory_bar(gpu, cells) if span.text.strip("▁")]


def test_the_memory_bar_tells_one_owner_from_the_other_and_from_nobody() -> None:
    shared, orphaned = panes.odd_cards().gpus[:2]
    assert _drawn(shared) == [("▇" * 13, "bar"), ("▆" * 4, "dim")]
    assert _drawn(orphaned) == [("▇" * 7, "bar"), ("▚" * 10, "orphan")]


def test_owners_whose_size_is_not_told_still_fill_the_bar() -> None:
    gpu = pieces.cards(1, 70.2)[0]
    untold = msgspec.structs.replace(
        gpu, owners=tuple(msgspec.structs.replace(o, mib=None) for o in gpu.owners)
    )
    assert _drawn(untold) == [("▇" * 10, "bar")]
    unknown = msgspec.structs.replace(gpu, card=msgspec.structs.replace(gpu.card, used_mib=None))
    assert memory_bar(unknown, 4) == (Span("▁▁▁▁", "faint"),)


def test_only_a_large_screen_has_boxes_and_the_log_keeps_more_than_half_of_it() -> None:
    assert boxes_fit(8, Size(160, 45))
    assert boxes_fit(16, Size(200, 50))
    assert not boxes_fit(8, Size(159, 60))
    assert not boxes_fit(8, Size(200, 44))
    assert not boxes_fit(32, Size(200, 50))
    assert not boxes_fit(0, Size(200, 50))
