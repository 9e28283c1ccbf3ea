"""Times as a person says them."""

from __future__ import annotations

import pytest

from specdash.monitor.spans import waited


@pytest.mark.parametrize(("seconds", "says"), [(0.029, "29 ms"), (0.8, "0.8 s"), (12.0, "12.0 s")])
def test_an_answer_that_was_quick_took_more_than_nothing(seconds: float, says: str) -> None:
    assert waited(seconds) == says
