"""One root cause out of many errors: the earliest exception of the earliest rank that fails."""

from __future__ import annotations

import re

import msgspec

from specdash.monitor.trouble import Trouble, Troubles

NEAR_LINES = 150
"""An exception is a cause only where the launch breaks down this soon after it."""

_SIGKILL = ("-9", "137")
_CODE = re.compile(r"-?\d+")


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a launch ended, as far as its log tells."""

    root: Trouble
    key: str
    victims: tuple[Trouble, ...] = ()


def find_cause(troubles: Troubles, last_life: int | None = None) -> Cause | None:
    """The root cause, or None where the log shows no death (or only one that somebody asked for).

    ``last_life`` is the last line that showed progress: an exception with nothing after it is taken for the
    end. None: the server is known to have gone on (it lives, or it was ready), and an exception needs more
    than being the last word.
    """
    stop = troubles.stop_line
    deadly = [trouble for trouble in troubles.found if stop is None or trouble.line < stop]
    root, key = _pick(deadly, last_life)
    if root is None:
        return None
    victims = tuple(
        one for one in deadly if one is not root and one.kind != "fatal" and not _heads(one, root)
    )
    return Cause(root=root, key=key, victims=victims)


def _heads(one: Trouble, root: Trouble) -> bool:
    """``1 validation error for ModelConfig``: the line below it, which is the root, says which."""
    return one.kind is None and 0 < root.line - one.line <= 2 and bool(_HEAD.match(one.message))


_HEAD = re.compile(r"\d+ validation errors? for ")


def _pick(deadly: list[Trouble], last_life: int | None) -> tuple[Trouble | None, str]:
    named = [one for one in deadly if _proven(one, deadly, last_life)]
    if named:
        first = min(named, key=lambda one: one.line)
        same = [one for one in named if one.source == first.source]
        known = [one for one in same if one.kind == "root"]
        root = known[0] if known else first
        return root, root.key or "scheduler_exception"
    ends = [one for one in deadly if one.kind == "late" or _killed(one)]
    if ends:
        root = ends[0]
        return root, root.key or "rank_killed_sigkill"
    dead = [one for one in deadly if one.kind == "death"]
    if dead:
        told = _CODE.fullmatch(dead[0].fields.get("code", ""))
        return dead[0], "scheduler_exception" if told else "peer_died_first"
    bare = [one for one in deadly if one.kind is None and _ends_here(one, deadly, last_life)]
    if bare:
        return bare[0], "scheduler_exception"
    victims = [one for one in deadly if one.kind == "victim"]
    victims = [one for one in victims if one.fatal or _final(one) or _ends_here(one, deadly, last_life)]
    if victims:
        special = next((one for one in victims if one.key), None)
        return special or victims[0], (special.key if special else "peer_died_first")
    fatal = [one for one in deadly if one.kind == "fatal"]
    return (fatal[0], fatal[0].key or "scheduler_exception") if fatal else (None, "")


def _proven(one: Trouble, deadly: list[Trouble], last_life: int | None) -> bool:
    """An exception that its launch did not outlive: imports fail and requests fail, and servers go on.

    An unknown one without a message (a bare ``TimeoutError``) explains nothing where something later has
    words.
    """
    if one.kind != "root" and (one.kind is not None or not one.message):
        return False
    return one.fatal or _ends_here(one, deadly, last_life)


def _ends_here(one: Trouble, deadly: list[Trouble], last_life: int | None) -> bool:
    breaks = any(
        other is not one and _final(other) and 0 <= other.line - one.line <= NEAR_LINES for other in deadly
    )
    return breaks or (last_life is not None and one.line > last_life)


def _final(one: Trouble) -> bool:
    """Whoever says this does not serve again: a dying process, or the engine about its own death."""
    own = one.signature is not None and bool(one.signature.engine)
    return one.kind in ("fatal", "late", "death") or (one.kind == "victim" and own)


def _killed(one: Trouble) -> bool:
    return one.kind == "death" and one.fields.get("code") in _SIGKILL


_TOTAL = re.compile(r".*total capacity of ([\d.]+) GiB of which ([\d.]+) ([GM])iB is free")
_MINE = re.compile(r".*this process has ([\d.]+) ([GM])iB memory in use")
_TORCH = re.compile(r".*allocated memory ([\d.]+) ([GM])iB is allocated by PyTorch")
_OTHERS = re.compile(r"\bProcess \d+ has [\d.]+ [GM]iB memory in use")
_OTHERS_SHARE = 0.1
"""Other processes hold more than this part of the card: that, not our own size, is why there is no room."""


def refine(cause: Cause, troubles: Troubles) -> str:
    """The key of a cause, seen in its surroundings."""
    root, key = cause.root, cause.key
    if key.startswith("oom_") and _others_hold(root.message):
        return "leftover_gpu_memory"
    compiled = any(note.key == "healthy_deepgemm_jit" and note.line < root.line for note in troubles.notes)
    if key == "nccl_timeout" and (compiled or root.phase == "compile"):
        return "nccl_timeout_during_jit"
    return key


def _others_hold(message: str) -> bool:
    """PyTorch's own account of the card. In a container it names pids, ours among them, and not us."""
    card = _TOTAL.match(message)
    mine = _MINE.match(message)
    if mine is None and len(_OTHERS.findall(message)) > 1:
        mine = _TORCH.match(message)
    if card is None or mine is None:
        return False
    total = float(card[1])
    return total - _gib(card[2], card[3]) - _gib(mine[1], mine[2]) > _OTHERS_SHARE * total


def _gib(number: str, unit: str) -> float:
    return float(number) / (1024 if unit == "M" else 1)
