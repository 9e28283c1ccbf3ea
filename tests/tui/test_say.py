"""Words and numbers as every screen writes them."""

from __future__ import annotations

import pytest

from specdash.engines.grammar import Grammar
from specdash.engines.loader import shipped
from specdash.tui import say


@pytest.mark.parametrize("grammar", shipped(), ids=lambda grammar: grammar.name)
def test_an_engine_is_called_by_the_title_of_its_file(grammar: Grammar) -> None:
    assert say.engine(grammar.name, None) == grammar.spec.title


def test_an_engine_has_its_version_behind_it_and_one_that_nobody_knows_its_own_name() -> None:
    assert say.engine("vllm", "0.11.0") == "vLLM 0.11.0"
    assert say.engine("frobnicator", None) == "frobnicator"
