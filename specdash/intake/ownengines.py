"""The user's own engines: grammars in the config folder, read once; a bad file is told of and left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs
import tomli

from specdash import ownfiles
from specdash.engines.common import book_with
from specdash.engines.grammar import Grammar, GrammarError
from specdash.engines.loader import parse_own
from specdash.wording import why


class OwnEngines(NamedTuple):
    """What the folder holds."""

    grammars: tuple[Grammar, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = {}
    """Name → the whole file: its failure signatures belong into the book."""
    problems: tuple[str, ...] = ()
    """One sentence for each file that could not be used: file, line and key."""


def folder() -> Path:
    """Where a user puts ``NAME.toml`` to teach specdash another engine."""
    return platformdirs.user_config_path("specdash") / "engines"


def read(place: Path | None = None) -> OwnEngines:
    """Read every file of the folder; of two files with one name the first counts."""
    found = OwnEngines()
    for file in sorted((place or folder()).glob("*.toml")):
        found = _with(found, file)
    return found


def _with(found: OwnEngines, file: Path) -> OwnEngines:
    """Add one file, or why it cannot be used."""
    try:
        text = ownfiles.text_of(file)
        grammar = parse_own(str(file), text)
        table = tomli.loads(text)
        if grammar.name in found.tables:
            raise GrammarError(f"{file}: another file is named {grammar.name!r}, too")
        book_with({grammar.name: table})
    except (OSError, UnicodeDecodeError) as error:
        return found._replace(problems=(*found.problems, f"{file}: {why(error)}"))
    except GrammarError as error:
        return found._replace(problems=(*found.problems, str(error)))
    except ValueError as error:  # of the book: names the row
        return found._replace(problems=(*found.problems, f"{file}: {error}"))
    tables = {**found.tables, grammar.name: table}
    return found._replace(grammars=(*found.grammars, grammar), tables=tables)
