"""Grammars from TOML: those that are shipped, and those that a user adds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Final

import msgspec
import tomli

from specdash.engines.common import default_book
from specdash.engines.grammar import Grammar, GrammarError
from specdash.engines.schema import Spec

SHIPPED: Final = ("sglang", "vllm", "generic")
"""Files of this package; ``generic`` is what is left when no engine is recognised."""

GENERIC: Final = "generic"


def parse(source: str, text: str, extra_seeks: Iterable[str] = ()) -> Grammar:
    """One grammar from the text of a TOML file; ``source`` names it in errors.

    Raises ``GrammarError`` with file and key where it is no TOML, a key is unknown or of the wrong type, an
    expression is broken, or a marker lacks what its kind needs.
    """
    try:
        spec = msgspec.convert(tomli.loads(text), Spec)
    except tomli.TOMLDecodeError as error:
        raise GrammarError(f"{source}: not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise GrammarError(f"{source}: {error}") from None
    return Grammar(spec, source, extra_seeks)


@lru_cache(maxsize=1)
def shipped() -> tuple[Grammar, ...]:
    """The grammars of this package, read once."""
    folder = resources.files("specdash.engines")
    common = _common_seeks()
    return tuple(
        parse(f"{name}.toml", folder.joinpath(f"{name}.toml").read_text("utf-8"), common) for name in SHIPPED
    )


def grammars(users: Iterable[tuple[str, str]] = ()) -> tuple[Grammar, ...]:
    """Shipped grammars and the user's, given as (file name, text); a user's replaces ours of that name."""
    mine = [parse(source, text, _common_seeks()) for source, text in users]
    names = {grammar.name for grammar in mine}
    return (*mine, *(grammar for grammar in shipped() if grammar.name not in names))


@lru_cache(maxsize=1)
def _common_seeks() -> tuple[str, ...]:
    """What the failure signatures seek."""
    return tuple(seek for row in default_book().lines for seek in row.signature.seek)
