"""Failure signatures are data: each is held to its own examples."""

from __future__ import annotations

from typing import Any

import pytest

from specdash.engines.common import default_book, parse_book
from specdash.monitor.signatures import Signature
from specdash.monitor.trouble import TroubleCollector

BOOK = default_book()
FOUND_BY_CLASS = ("Error", "Exception", "KeyboardInterrupt")
ROWS = [row.signature for row in (*BOOK.exceptions, *BOOK.lines)]
EXAMPLES = [(row, example) for row in ROWS for example in row.examples]


@pytest.mark.parametrize(("row", "example"), EXAMPLES, ids=[example[:60] for _, example in EXAMPLES])
def test_each_example_is_taken_by_its_own_signature_first(row: Signature, example: str) -> None:
    collector = TroubleCollector(BOOK)
    collector.feed(7, example, engine=row.engine or None)
    found = (*collector.found.found, *collector.found.notes)
    if row.kind == "noise":
        assert not found
    elif row.kind == "stop":
        assert collector.found.stop_line == 7
    elif row.kind == "wrapper":
        assert [one.kind for one in found] != [None] or found[0].phase == row.phase
    else:
        assert [one.signature for one in found] == [row]


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{row.key or row.kind}-{row.line or row.message}"[:70] for row in ROWS]
)
def test_each_signature_has_an_example_that_can_be_found_by_plain_strings(row: Signature) -> None:
    assert row.examples or row.within, "a signature without a context of its own needs an example"
    for example in row.examples:
        sought = row.seek if row.line else FOUND_BY_CLASS
        assert any(text in example for text in sought), example


def test_every_diagnosis_of_the_data_has_a_remedy_unless_all_is_well() -> None:
    for key, meaning in BOOK.meanings.items():
        assert meaning.says
        assert meaning.remedy or meaning.severity == "info", key


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([{"kind": "root", "key": "no_such_key", "message": "x"}], "no_such_key"),
        ([{"kind": "rooot", "message": "x"}], "kind"),
        ([{"kind": "root", "mesage": "x"}], "mesage"),
        ([{"kind": "root", "message": "("}], r"\("),
        ([{"kind": "root"}], "root"),
        ([{"kind": "root", "line": "x"}], "seek"),
    ],
)
def test_a_mistake_in_the_data_is_named(rows: list[dict[str, Any]], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        parse_book({"signature": rows}, {}, {})
