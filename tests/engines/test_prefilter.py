from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specdash.engines.prefilter import any_of


def test_nothing_sought_is_never_found() -> None:
    assert any_of([]).search(b"anything") is None


@given(st.lists(st.text("ab[(.", min_size=1, max_size=4), max_size=6), st.text("ab[(.", max_size=12))
def test_it_finds_what_a_plain_search_finds(words: list[str], text: str) -> None:
    found = any_of(words).search(text.encode()) is not None
    assert found == any(word in text for word in words)
