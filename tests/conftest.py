from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or writes the history, journals and recordings of whoever runs it."""
    before = os.environ.get("XDG_STATE_HOME")
    folder = tmp_path_factory.mktemp("state")
    os.environ["XDG_STATE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Tests that run side by side must agree on their names, although keys and archives are made anew."""
    if isinstance(val, bytes):
        return f"{len(val)} bytes"
    return re.sub(r"AAAA[A-Za-z0-9+/=]+", "KEY", val) if isinstance(val, str) and "AAAA" in val else None
