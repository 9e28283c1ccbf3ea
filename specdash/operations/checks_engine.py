"""Whether the engine's version takes the flags, and whether it is still the version that worked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources

import msgspec
import tomli

from specdash.monitor.commandline import flag
from specdash.operations.checks import Line, bad, ok, unknown, warn
from specdash.operations.replies_probe import Python


class FlagRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Flags that only some versions take."""

    engine: str
    names: tuple[str, ...]
    since: str | None = None
    until: str | None = None
    instead: str | None = None


@lru_cache(maxsize=1)
def rules() -> tuple[FlagRule, ...]:
    """The table, read once."""
    text = resources.files("specdash.operations").joinpath("flags.toml").read_text("utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["flag"], list[FlagRule]))


def number(version: str) -> tuple[int, ...]:
    """``0.5.12.post1+cu130`` → (0, 5, 12): enough to compare releases."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def same(one: str, other: str) -> bool:
    """One release: a local part (``+cpu``, ``+cu130``) counts only where both tell it."""
    (public, _, local), (public_too, _, local_too) = one.partition("+"), other.partition("+")
    return public == public_too and (local == local_too or not local or not local_too)


def needs_no_gpu(argv: Sequence[str], found: str | None) -> str | None:
    """Why this start takes no GPU; None where it takes some, or nothing says otherwise."""
    if flag(argv, "--device") == "cpu":
        return "--device cpu"
    return "a CPU build" if found is not None and "cpu" in found.partition("+")[2].split(".") else None


def version(engine: str, python: Python | None, last_good: str | None) -> Line:
    """It is installed there, and what changed since it last worked."""
    if python is None or python.error:
        return unknown("version", python.error if python and python.error else "its Python is not known")
    if engine not in python.modules:
        return unknown("version", f"which {engine} it is could not be seen")
    now = python.modules[engine]
    if now is None:
        return unknown(
            "version", f"{engine} is not known to {python.executable or 'its Python'}'s package list"
        )
    if last_good and not same(last_good, now):
        return warn(
            "version", f"{engine} {last_good} → {now} since the last good launch", "mind it if it fails"
        )
    return ok("version", f"{engine} {now}" + (", as at the last good launch" if last_good else ""))


def flags(engine: str, argv: Sequence[str], found: str | None) -> Iterator[Line]:
    """No flag that this version does not take; no half of a triple."""
    given = {word.partition("=")[0] for word in argv if word.startswith("-")}
    wrong = False
    for rule in rules():
        names = [name for name in rule.names if name in given]
        if rule.engine != engine or not names:
            continue
        if found is None:
            yield unknown("flags", f"{names[0]} is not in every version, and the version is not known")
            wrong = True
        elif (line := _judged(rule, names[0], found)) is not None:
            yield line
            wrong = True
    if engine == "sglang" and (half := _half_a_triple(argv)) is not None:
        yield half
        wrong = True
    if not wrong:
        yield ok("flags", f"{len(given)} flags, none known to be wrong" if given else "none")


def _judged(rule: FlagRule, name: str, found: str) -> Line | None:
    help_ = f"use {rule.instead}" if rule.instead else "leave it out"
    if rule.since and number(found) < number(rule.since):
        return bad("flags", f"{name} came with {rule.engine} {rule.since}; this is {found}", help_)
    if rule.until and number(found) > number(rule.until):
        return bad("flags", f"{name} went after {rule.engine} {rule.until}; this is {found}", help_)
    return None


def _half_a_triple(argv: Sequence[str]) -> Line | None:
    """SGLang takes all three numbers of speculation or none; half of them is a bare AssertionError."""
    steps = flag(argv, "--speculative-num-steps")
    others = [flag(argv, "--speculative-eagle-topk"), flag(argv, "--speculative-num-draft-tokens")]
    if steps is None and any(value is not None for value in others):
        words = "--speculative-num-steps is missing beside --speculative-eagle-topk or -num-draft-tokens"
        return bad("flags", words, "give all three or none")
    return None
