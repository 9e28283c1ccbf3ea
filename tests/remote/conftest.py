"""Names of tests that do not change from run to run, although their keys are made anew."""

from __future__ import annotations

import re

import pytest


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Tests that run side by side must agree on their names: a fresh key is called KEY."""
    return re.sub(r"AAAA[A-Za-z0-9+/=]+", "KEY", val) if isinstance(val, str) and "AAAA" in val else None
