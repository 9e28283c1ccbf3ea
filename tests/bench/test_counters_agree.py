"""The agent imports nothing of ours, so its list of counters is a second one: they agree."""

from __future__ import annotations

from specdash.agent import loadfetch
from specdash.bench import counters


def test_the_generator_sends_every_counter_that_is_read() -> None:
    assert [name for name in counters.KEEP if not name.startswith(loadfetch.KEEP)] == []
