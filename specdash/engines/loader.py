"""Grammars from TOML: those that are shipped, and those that a user adds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import msgspec
import tomli

from specdash import plainly
from specdash.engines.common import ENGINES, default_book, read_table
from specdash.engines.grammar import Grammar, GrammarError
from specdash.engines.places import place
from specdash.engines.schema import Spec

SHIPPED: Final = (*ENGINES, "generic")
"""Files of this package; ``generic`` is what is left when no engine is recognised."""

GENERIC: Final = "generic"

INCLUDED: Final = ("uvicorn",)
"""Files of this package with markers that grammars may include."""


def parse(source: str, text: str, extra_seeks: Iterable[str] = ()) -> Grammar:
    """One grammar from the text of a TOML file; ``source`` names it in errors.

    Raises ``GrammarError`` with file, line and key where it is no TOML, a key is unknown or of the wrong
    type, an expression is broken, or a marker lacks what its kind needs.
    """
    try:
        table = tomli.loads(text)
        spec = msgspec.convert(_with_included(table), Spec)
        return Grammar(spec, source, extra_seeks)
    except tomli.TOMLDecodeError as error:
        line, says = plainly.syntax(str(error), text)
        raise GrammarError(f"{source}: line {line}: {says}") from None
    except msgspec.ValidationError as error:
        says, _, path = str(error).partition(" - at ")
        key = path.strip("`").removeprefix("$").lstrip(".")
        told = f"{key}: {plainly.types(says)}" if key else plainly.types(says)
        raise GrammarError(f"{source}{place(text, str(error))}: {told}") from None
    except GrammarError as error:
        words = str(error).removeprefix(f"{source}: ")
        raise GrammarError(f"{source}{place(text, words)}: {words}") from None


def _with_included(table: dict[str, Any]) -> dict[str, Any]:
    """Add the markers of the files that are named; where both have a name, the grammar's own counts."""
    names = table.get("include", [])
    markers = table.get("marker", [])
    if not isinstance(names, list) or not isinstance(markers, list):
        return table
    mine = {marker.get("name") for marker in markers if isinstance(marker, dict)}
    for name in names:
        if name not in INCLUDED:
            raise GrammarError(f"include: {name!r} is none of {', '.join(INCLUDED)}")
        markers = [
            *markers,
            *(one for one in read_table(f"{name}.toml")["marker"] if one["name"] not in mine),
        ]
    return {**table, "marker": markers}


@lru_cache(maxsize=1)
def shipped() -> tuple[Grammar, ...]:
    """The grammars of this package, read once."""
    folder = resources.files("specdash.engines")
    common = _common_seeks()
    return tuple(
        parse(f"{name}.toml", folder.joinpath(f"{name}.toml").read_text("utf-8"), common) for name in SHIPPED
    )


def parse_own(source: str, text: str) -> Grammar:
    """A user's grammar. Raises ``GrammarError`` as ``parse`` does."""
    return parse(source, text, _common_seeks())


def grammars(mine: Iterable[Grammar] = ()) -> tuple[Grammar, ...]:
    """The user's grammars and the shipped ones; a user's replaces ours of that name."""
    own = tuple(mine)
    names = {grammar.name for grammar in own}
    return (*own, *(grammar for grammar in shipped() if grammar.name not in names))


@lru_cache(maxsize=1)
def _common_seeks() -> tuple[str, ...]:
    """What the failure signatures seek."""
    return tuple(seek for row in default_book().lines for seek in row.signature.seek)
