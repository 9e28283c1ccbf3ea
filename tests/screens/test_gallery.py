"""Every state on a usual screen in every shipped set of colours. A changed picture is looked at before it is
kept: ``pytest tests/screens --snapshot-update``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.screens.gallery import SCENES, in_all_colours


@pytest.mark.parametrize("name", SCENES)
def test_120x40(name: str, tmp_path: Path, kept: SnapshotAssertion) -> None:
    assert in_all_colours(name, (120, 40), tmp_path) == kept
