"""Words of a profile that only the rest of the program knows: engines, themes, targets.

Asked by ``specdash config check`` alone: reading a profile must not need the screens.
"""

from __future__ import annotations

from collections.abc import Iterator

from specdash.engines.loader import GENERIC
from specdash.errors import SpecdashError
from specdash.intake.rules import default_rules
from specdash.profile.document import Mistake, Profile
from specdash.profile.lines import line_of, lines_of
from specdash.remote.target import parse_target
from specdash.wording import nearest


def word_mistakes(profile: Profile, text: str) -> list[Mistake]:
    """What is no target, no engine and no theme, in the order of the lines."""
    lines = lines_of(text)
    told = (
        Mistake(key=key, line=line_of(lines, key), says=says)
        for key, says in (*_targets(profile), *_engines(profile), *_themes(profile))
    )
    return sorted(told, key=lambda mistake: mistake.line or 0)


def _targets(profile: Profile) -> Iterator[tuple[str, str]]:
    for name, host in profile.hosts.items():
        for key, target in (("target", host.target), ("cleanup_via", host.cleanup_via)):
            if target is not None:
                try:
                    parse_target(target)
                except SpecdashError as error:
                    yield f"hosts.{name}.{key}", error.message


def _engines(profile: Profile) -> Iterator[tuple[str, str]]:
    known = [grammar.name for grammar in default_rules().grammars if grammar.name != GENERIC]
    for name, server in profile.servers.items():
        if server.engine not in known:
            near = nearest(server.engine, known) or f"; known: {', '.join(known)}"
            yield f"servers.{name}.engine", f"no engine {server.engine}{near}"


def _themes(profile: Profile) -> Iterator[tuple[str, str]]:
    chosen = [(name, host.theme) for name, host in profile.hosts.items() if host.theme is not None]
    if not chosen:
        return
    from textual.theme import BUILTIN_THEMES

    from specdash.tui.themes import load_all

    known = {*load_all()[0], *BUILTIN_THEMES}
    for name, theme in chosen:
        if theme not in known:
            near = nearest(theme, known) or "; specdash themes names them"
            yield f"hosts.{name}.theme", f"no theme {theme}{near}"
