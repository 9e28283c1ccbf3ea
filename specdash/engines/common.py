"""The data that hold for every engine: limits per phase, failure signatures, the words of the diagnoses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, TypeVar

import msgspec
import tomli

from specdash.monitor.limits import Limits
from specdash.monitor.signatures import Book, Frame, Meaning, Signature, make_book

T = TypeVar("T")

ENGINES = ("sglang", "vllm", "trtllm", "tgi", "lmdeploy", "llamacpp", "transformers")
"""Files of this package with failure signatures of their own."""


def parse_limits(data: Mapping[str, Any]) -> Limits:
    """The ``[limits]`` of a TOML document.

    Raises ``ValueError`` naming the key where a row is missing, misspelt or of the wrong type.
    """
    return _convert(data.get("limits", {}), Limits, "limits")


def parse_book(
    common: Mapping[str, Any], texts: Mapping[str, Any], engines: Mapping[str, Iterable[Mapping[str, Any]]]
) -> Book:
    """Signatures, frames and meanings as one book.

    ``common`` is the table of what holds for every engine, ``texts`` the one of the diagnoses, ``engines``
    each engine's own ``[[signature]]`` rows, which are looked at first. Raises ``ValueError`` naming the row
    that is misspelt, of the wrong type, or names a diagnosis without words.
    """
    own = [
        msgspec.structs.replace(row, engine=name)
        for name, rows in engines.items()
        for row in _convert(list(rows), list[Signature], f"{name}: signature")
    ]
    return make_book(
        [*own, *_convert(common.get("signature", []), list[Signature], "common: signature")],
        _convert(common.get("frame", []), list[Frame], "common: frame"),
        _convert(texts.get("diagnosis", {}), dict[str, Meaning], "diagnoses: diagnosis"),
    )


def _convert(value: object, wanted: type[T], what: str) -> T:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise ValueError(f"{what}: {error}") from None


def read_table(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomli.loads(resources.files("specdash.engines").joinpath(name).read_text("utf-8"))


@lru_cache(maxsize=1)
def default_limits() -> Limits:
    """The shipped limits, read once."""
    return parse_limits(read_table("common.toml"))


@lru_cache(maxsize=1)
def default_book() -> Book:
    """The shipped signatures and words, and those of the user's engines, read once."""
    return book_with(_taught)


def book_with(engines: Mapping[str, Mapping[str, Any]]) -> Book:
    """The shipped book, with these engines' ``signature`` and ``diagnosis`` tables in place of ours.

    Raises ``ValueError`` naming the row that does not hold together.
    """
    rows = {name: read_table(f"{name}.toml").get("signature", []) for name in ENGINES}
    rows.update((name, table.get("signature", [])) for name, table in engines.items())
    texts = read_table("diagnoses.toml")
    for table in engines.values():
        texts["diagnosis"] = {**texts["diagnosis"], **table.get("diagnosis", {})}
    return parse_book(read_table("common.toml"), texts, rows)


_taught: dict[str, Mapping[str, Any]] = {}


def teach(engines: Mapping[str, Mapping[str, Any]]) -> None:
    """Let the default book know the user's engines from now on; called once, before anything is read."""
    _taught.clear()
    _taught.update(engines)
    default_book.cache_clear()
