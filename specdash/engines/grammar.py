"""A grammar made ready to read with: expressions compiled, markers found by what they seek."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from specdash.engines.prefilter import any_of
from specdash.engines.schema import Lines, Marker, Spec
from specdash.monitor.words import PHASES

ALWAYS_SOUGHT: Final = ("Error", "Exception", "Traceback (most recent call last)", "exit code", "Killed")
"""Strings that make a line worth a look whatever the engine: how Python programs die."""


_PREFIXED: Final = frozenset({"launch", "milestone", "closes", "ready", "figures", "draft", "facts"})
"""Kinds that an engine's logger prints, so never without its prefix, unless the marker says so."""


class GrammarError(ValueError):
    """A grammar that cannot be used; the message names the file and the key."""


class Rule:
    """A marker with its expression compiled."""

    __slots__ = ("bare", "groups", "marker", "regex", "seeks")

    def __init__(self, marker: Marker, regex: re.Pattern[str]) -> None:
        self.marker = marker
        self.regex = regex
        self.groups = frozenset(regex.groupindex)
        self.seeks = tuple(seek.encode() for seek in marker.seek)
        self.bare = marker.bare or marker.kind not in _PREFIXED


class Grammar:
    """One engine's language, ready for use. Never changed after it was made."""

    def __init__(self, spec: Spec, source: str, extra_seeks: Iterable[str] = ()) -> None:
        """Compile ``spec``. ``source`` is the file's name, for errors.

        Raises ``GrammarError`` naming file and key where an expression is broken or a marker incomplete.
        """
        self.spec: Final = spec
        self.name: Final = spec.name
        compiler = _Compiler(source)
        self.prefix: Final = compiler.regex("lines.prefix", spec.lines.prefix)
        self.rank: Final = compiler.optional("lines.rank", spec.lines.rank)
        self.actor: Final = compiler.optional("lines.actor", spec.lines.actor)
        self.detect: Final = tuple(
            compiler.regex(f"detect.lines[{i}]", f"(?m){text}") for i, text in enumerate(spec.detect.lines)
        )
        rules = [compiler.rule(marker) for marker in spec.marker]
        compiler.unique(rules)
        self.bars: Final = tuple(rule for rule in rules if rule.marker.kind == "bar")
        self.rules: Final = tuple(rule for rule in rules if rule.marker.kind != "bar")
        self._sought_rules: Final = tuple((seek, rule) for rule in self.rules for seek in rule.seeks)
        seeks = {seek for rule in rules for seek in rule.marker.seek}
        seeks.update(ALWAYS_SOUGHT, extra_seeks, *(_seeks(table) for table in spec.signature))
        self.sought: Final = any_of(seeks)
        """Finds in the bytes of a line whatever makes it worth reading."""
        self.bar_sought: Final = any_of(seek for rule in self.bars for seek in rule.marker.seek)
        self.waiting: Final = _waiting(self.rules)
        """By its first words: figures lines of which only the newest count."""
        self.hot: Final = compiler.hot(spec.lines)
        if set(spec.order) != set(PHASES):
            raise GrammarError(f"{source}: order: every phase must stand there once")
        self.order: Final = {phase: place for place, phase in enumerate(spec.order)}

    def __repr__(self) -> str:
        return f"<Grammar {self.name}: {len(self.rules)} markers, {len(self.bars)} bars>"

    def candidates(self, raw: bytes) -> list[Rule]:
        """The rules of which some string stands in ``raw``.

        Each is looked for by itself: one search for all would let a longer string hide a shorter one.
        """
        return list(dict.fromkeys([rule for seek, rule in self._sought_rules if seek in raw]))


def _seeks(table: Mapping[str, Any]) -> tuple[str, ...]:
    seek = table.get("seek", ())
    return (seek,) if isinstance(seek, str) else tuple(seek)


def _waiting(rules: Iterable[Rule]) -> dict[bytes, Rule]:
    # Lines that say "no tokens" are counted one by one: those with the group prompt_tok_s.
    figures = [rule for rule in rules if rule.marker.kind == "figures" and not rule.marker.serves]
    return {seek.encode(): rule for rule in figures for seek in rule.marker.seek}


class _Compiler:
    def __init__(self, source: str) -> None:
        self._source = source

    def regex(self, key: str, text: str) -> re.Pattern[str]:
        try:
            return re.compile(text)
        except re.error as error:
            raise GrammarError(f"{self._source}: {key}: not a regular expression: {error}") from None

    def optional(self, key: str, text: str | None) -> re.Pattern[str] | None:
        return None if text is None else self.regex(key, text)

    def hot(self, lines: Lines) -> re.Pattern[bytes] | None:
        if lines.hot is None:
            return None
        bare = "?" if lines.hot_bare else ""
        return re.compile(
            self.regex("lines.hot", f"(?:{lines.prefix}){bare}(?:{lines.hot})").pattern.encode()
        )

    def rule(self, marker: Marker) -> Rule:
        key = f"marker {marker.name!r}"
        rule = Rule(marker, self.regex(f"{key}: match", marker.match))
        if marker.kind in ("milestone", "closes") and (marker.phase is None or marker.event is None):
            raise GrammarError(f"{self._source}: {key}: a milestone needs phase and event")
        if marker.kind == "bar" and (marker.phase is None or not {"done", "total"} <= rule.groups):
            raise GrammarError(f"{self._source}: {key}: a bar needs phase and the groups done and total")
        for example in marker.examples:
            if not any(seek in example for seek in marker.seek):
                raise GrammarError(f"{self._source}: {key}: nothing sought stands in {example[:60]!r}")
        return rule

    def unique(self, rules: Iterable[Rule]) -> None:
        for name in _repeated(rule.marker.name for rule in rules):
            raise GrammarError(f"{self._source}: marker {name!r} stands there twice")


def _repeated(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
