"""The data that hold for every engine: limits per phase, failure signatures, the words of the diagnoses."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec
import tomli

from specdash.monitor.limits import Limits


def parse_limits(data: dict[str, Any]) -> Limits:
    """The ``[limits]`` of a TOML document.

    Raises ``ValueError`` naming the key where a row is missing, misspelt or of the wrong type.
    """
    try:
        return msgspec.convert(data.get("limits", {}), Limits)
    except msgspec.ValidationError as error:
        raise ValueError(f"limits: {error}") from None


def read_table(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomli.loads(resources.files("specdash.engines").joinpath(name).read_text("utf-8"))


@lru_cache(maxsize=1)
def default_limits() -> Limits:
    """The shipped limits, read once."""
    return parse_limits(read_table("common.toml"))
