"""Pictures do not depend on whoever takes them, and one that differs says where."""

from __future__ import annotations

import difflib
import html
import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_textual_snapshot import node_to_report_path  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion

from tests.screens.photo import PhotoFile
from tests.tui.conftest import own_folders as own_folders
from tests.tui.conftest import still as still

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def steady(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of one zone, and a history in which nothing is."""
    time.tzset()
    monkeypatch.setenv("XDG_STATE_HOME", str(own_folders / "history"))


@pytest.fixture
def kept(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The picture of before, as text."""
    return snapshot.use_extension(PhotoFile)


@pytest.fixture
def snap_compare(snap_compare: Compare, request: pytest.FixtureRequest) -> Compare:
    """As ever, and the rows that differ are printed: the report of a machine that is gone is gone, too."""

    def compare(*args: Any, **options: Any) -> bool:
        same = snap_compare(*args, **options)
        if not same:
            _, expected, actual, *_ = pickle.loads(node_to_report_path(request.node).read_bytes())
            rows = difflib.unified_diff(_rows(expected), _rows(actual), "kept", "now", n=0, lineterm="")
            print("\n".join(rows) or "the words are the same, the colours differ")  # noqa: T201
        return same

    return compare


def _rows(picture: str) -> list[str]:
    """The text of an SVG of Textual's, row by row."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', picture):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text)))
    return ["".join(text for _, text in sorted(rows[y])) for y in sorted(rows)]
