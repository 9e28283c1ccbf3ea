"""Every state on the smallest full screen and on a large one, in every shipped set of colours."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.screens.gallery import SCENES, in_all_colours


@pytest.mark.parametrize("name", SCENES)
def test_80x24(name: str, tmp_path: Path, kept: SnapshotAssertion) -> None:
    assert in_all_colours(name, (80, 24), tmp_path) == kept


@pytest.mark.parametrize("name", SCENES)
def test_200x50(name: str, tmp_path: Path, kept: SnapshotAssertion) -> None:
    assert in_all_colours(name, (200, 50), tmp_path) == kept
