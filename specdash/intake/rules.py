"""What the monitor must know beforehand, put together once: grammars, process titles, limits."""

from __future__ import annotations

import re
from functools import lru_cache

from specdash.engines.common import default_book, default_limits, teach
from specdash.engines.grammar import Grammar
from specdash.engines.loader import grammars
from specdash.intake import ownengines
from specdash.monitor.memory import Rules
from specdash.monitor.servers import NEVER, Titles


def titles_of(grammar: Grammar) -> Titles:
    """How this engine's processes are called."""
    spec = grammar.spec
    processes = spec.processes
    return Titles(
        engine=spec.name,
        main=re.compile(processes.main or NEVER),
        member=re.compile(processes.member or NEVER),
        rank=re.compile(processes.rank or NEVER),
        default_port=spec.default_port or 8000,
        watch=tuple(pattern for pattern in (processes.main, processes.member) if pattern),
    )


@lru_cache(maxsize=1)
def default_rules() -> Rules:
    """The shipped engines and limits, and the user's own engines."""
    own = ownengines.read()
    teach(own.tables)
    known = grammars(own.grammars)
    return Rules(
        grammars=known,
        titles=tuple(map(titles_of, known)),
        problems=own.problems,
        limits=default_limits(),
        book=default_book(),
    )


def grammar_of(engine: str) -> Grammar | None:
    """The language of that engine's logs; None for one that has no grammar."""
    return next((grammar for grammar in default_rules().grammars if grammar.name == engine), None)
