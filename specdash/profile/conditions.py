"""Conditions of runbooks: a small language of our own, never run as code.

``state == 'ready' and gpu.orphan_mib == 0``; names: ``state``, ``phase``, ``servers``, ``gpu.used_mib``,
``gpu.orphan_mib``; operators: ``== != < > and or not``, and parentheses. What is said of ``gpu`` must be so
for every card; ``gpu.used_mib < baseline`` is what an idle card shows. ``milestone capture end on all ranks``
(or ``begin``, or ``on TP3``) is what a server's log has said of its start.
"""

from __future__ import annotations

import difflib
import re
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from specdash.errors import SpecdashError
from specdash.monitor.words import PHASES, State

Name: TypeAlias = Literal["state", "phase", "servers", "gpu.used_mib", "gpu.orphan_mib"]
Operator: TypeAlias = Literal["==", "!=", "<", ">"]
NAMES: Final[tuple[str, ...]] = get_args(Name)
STATES: Final[tuple[str, ...]] = get_args(State)
_WORDS: Final[dict[str, tuple[str, ...]]] = {"state": STATES, "phase": PHASES}
"""Names whose values are words."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'[^']*'|"[^"]*")|(?P<number>\d+(?:\.\d+)?)|(?P<op>==|!=|<|>|\(|\))|(?P<name>[A-Za-z_][\w.]*))"""
)
DEEPEST = 20
MILESTONE, BASELINE = "milestone", "baseline"
EVENTS = ("begin", "end")


class ConditionError(SpecdashError):
    """A condition that cannot be understood; says where and why."""


class Comparison(msgspec.Struct, frozen=True, tag=True):
    """``state == 'ready'``"""

    name: str
    operator: str
    value: str | float


class Milestone(msgspec.Struct, frozen=True, tag=True):
    """``milestone capture end on all ranks``"""

    phase: str
    event: str
    rank: str | None = None
    """None: on every rank."""


class Not(msgspec.Struct, frozen=True, tag=True):
    """``not …``"""

    of: Condition


class Both(msgspec.Struct, frozen=True, tag=True):
    """``… and …``"""

    left: Condition
    right: Condition


class Either(msgspec.Struct, frozen=True, tag=True):
    """``… or …``"""

    left: Condition
    right: Condition


Condition: TypeAlias = Comparison | Milestone | Not | Both | Either


def parse(text: str) -> Condition:
    """The condition that a text means. Raises ``ConditionError``."""
    parser = _Parser(text)
    condition = parser.either(0)
    if parser.peek() is not None:
        raise ConditionError(f"{parser.peek()!r} is not expected in {text!r}")
    return condition


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise ConditionError(f"{text[at:].strip()[:20]!r} cannot be read in {text!r}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._next = 0

    def peek(self) -> str | None:
        """The next word, or None at the end."""
        return self._tokens[self._next][1] if self._next < len(self._tokens) else None

    def either(self, depth: int) -> Condition:
        """``a or b or c``"""
        left = self._both(depth)
        while self.peek() == "or":
            self._next += 1
            left = Either(left, self._both(depth))
        return left

    def _both(self, depth: int) -> Condition:
        left = self._one(depth)
        while self.peek() == "and":
            self._next += 1
            left = Both(left, self._one(depth))
        return left

    def _one(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise ConditionError("nested too deeply")
        if self.peek() == "not":
            self._next += 1
            return Not(self._one(depth + 1))
        if self.peek() == "(":
            self._next += 1
            inner = self.either(depth + 1)
            if self.peek() != ")":
                raise ConditionError(f"a ) is missing in {self._text!r}")
            self._next += 1
            return inner
        if self.peek() == MILESTONE:
            self._next += 1
            return self._milestone()
        return self._comparison()

    def _milestone(self) -> Milestone:
        _, phase = self._take("a phase behind milestone")
        if phase not in PHASES:
            raise ConditionError(f"{phase!r} is no phase{_nearest(phase, PHASES)}")
        _, event = self._take(f"begin or end behind milestone {phase}")
        if event not in EVENTS:
            raise ConditionError(f"{event!r} is neither begin nor end")
        if self.peek() != "on":
            return Milestone(phase, event)
        self._next += 1
        kind, rank = self._take("all ranks, or a rank, behind on")
        if rank == "all":
            if self._take("ranks behind all")[1] != "ranks":
                raise ConditionError(f"on all ranks is meant in {self._text!r}")
            return Milestone(phase, event)
        return Milestone(phase, event, rank[1:-1] if kind == "text" else rank)

    def _comparison(self) -> Condition:
        kind, name = self._take("a name")
        if kind != "name" or name not in NAMES:
            raise ConditionError(f"{name!r} is no name here{_nearest(name, (*NAMES, MILESTONE))}")
        kind, operator = self._take(f"an operator behind {name}")
        if operator not in get_args(Operator):
            raise ConditionError(f"{operator!r} is no operator: ==, !=, < and > are")
        kind, raw = self._take(f"a value behind {name} {operator}")
        words = _WORDS.get(name)
        if words is None:
            if raw == BASELINE and name == "gpu.used_mib":
                return Comparison(name, operator, BASELINE)
            if kind != "number":
                raise ConditionError(f"{name} is a number, {raw} is none")
            return Comparison(name, operator, float(raw))
        if kind != "text":
            raise ConditionError(f"{name} is a word in quotes, {raw} is none")
        if operator in ("<", ">"):
            raise ConditionError(f"{name} has no {operator}: == and != are")
        word = raw[1:-1]
        if word not in words:
            raise ConditionError(f"{word!r} is no {name}{_nearest(word, words)}")
        return Comparison(name, operator, word)

    def _take(self, wanted: str) -> tuple[str, str]:
        if self._next >= len(self._tokens):
            raise ConditionError(f"{wanted} is missing in {self._text!r}")
        self._next += 1
        return self._tokens[self._next - 1]


def _nearest(word: str, words: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f": did you mean {close[0]!r}?" if close else f": {', '.join(words)} are"
