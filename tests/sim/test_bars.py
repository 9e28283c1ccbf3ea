from __future__ import annotations

import pytest

from specdash.sim.engine import bars


def test_a_text_that_is_shorter_than_the_last_one_is_padded_over_it() -> None:
    labels = [f"Capturing batches (bs={size} avail_mem=9.00 GB)" for size in (16, 8)]
    texts = [text for _, text in bars.captures(labels, [0.02, 0.04])]
    assert texts[1].startswith("Capturing batches (bs=16 ")
    assert texts[2] == "Capturing batches (bs=8 avail_mem=9.00 GB):   0%|          | 0/2 [00:00<?, ?it/s] "


def test_the_label_names_the_shape_at_work_and_the_counter_lags_behind() -> None:
    labels = [f"L{n}" for n in range(10)]
    updates = list(bars.captures(labels, [0.03 * (n + 1) for n in range(10)]))
    at, text = next((at, text) for at, text in updates if text.startswith("L3:"))
    assert at == pytest.approx(0.09)
    assert "| 0/10 [" in text
    assert "| 4/10 [" in next(text for _, text in updates if text.startswith("L4:"))
    assert updates[-1][1].startswith("L9: 100%|██████████| 10/10 [")


def test_a_load_shows_every_shard_and_its_last_state_twice() -> None:
    texts = [text.rstrip() for _, text in bars.shards("Multi-thread loading shards", [1.0, 2.0, 3.0])]
    assert texts == [
        "Multi-thread loading shards:   0% Completed | 0/3 [00:00<?, ?it/s]",
        "Multi-thread loading shards:  33% Completed | 1/3 [00:01<00:02,  1.00it/s]",
        "Multi-thread loading shards:  67% Completed | 2/3 [00:02<00:01,  1.00it/s]",
        "Multi-thread loading shards: 100% Completed | 3/3 [00:03<00:00,  1.00it/s]",
        "Multi-thread loading shards: 100% Completed | 3/3 [00:03<00:00,  1.00it/s]",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0, "00:00"), (187.9, "03:07"), (3787, "1:03:07")])
def test_durations_are_written_as_tqdm_writes_them(seconds: float, text: str) -> None:
    assert bars.clock(seconds) == text


def test_a_slow_bar_counts_seconds_for_each_item() -> None:
    assert bars.shard_text("x", 1, 4, 20.0, 0.05) == "x:  25% Completed | 1/4 [00:20<01:00, 20.00s/it]"
