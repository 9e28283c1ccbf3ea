"""Whether a model folder is complete and a draft fits its target. Pure: configs and sizes in, lines out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from specdash.operations.checks import Line, bad, gib, ok, unknown, warn
from specdash.operations.replies import Stat
from specdash.wording import named

LFS = b"version https://git-lfs"
_WEIGHTS = re.compile(r"\.(?:safetensors|bin|pt|pth|gguf)$")
_NOT_WEIGHTS = re.compile(r"^(?:training_args|optimizer|scheduler|rng_state|consolidated\.\d+\.)")
_NUMBERED = re.compile(r"^(?P<stem>.*-)(?P<n>\d+)-of-(?P<total>\d+)(?P<suffix>\.\w+)$")
_LENGTHS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
"""Where SGLang looks for a model's context, in this order."""
_DRAFT = re.compile(r"eagle|mtp|nextn|medusa|dflash|dspark|speculator", re.IGNORECASE)


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A model folder as the host tells of it."""

    path: str
    exists: bool = True
    error: str | None = None
    config: Mapping[str, Any] | None = None
    config_error: str | None = None
    entries: Mapping[str, int] = {}
    """Name → size of what is in it."""
    index: str | None = None
    """The name of its index."""
    named: tuple[str, ...] = ()
    """The shards that the index names."""
    total_bytes: int | None = None
    """What the index says that all weights have."""
    small: tuple[Stat, ...] = ()
    """Weight files that are too small to be any, with their first bytes."""


def complete(key: str, folder: Folder, *, dummy: bool = False) -> Iterator[Line]:
    """Config, every shard, no pointer in a shard's place, no byte short."""
    if not folder.exists:
        yield bad(
            key,
            named(folder.path, folder.error or "there is no such folder"),
            "check the path as it is there",
        )
        return
    if folder.config is None:
        config = f"{folder.path}/config.json"
        yield bad(key, named(config, folder.config_error or "missing"), "download it again")
        return
    if dummy:
        yield ok(key, f"{folder.path}: dummy weights are asked for")
        return
    weights = [name for name in folder.entries if _WEIGHTS.search(name) and not _NOT_WEIGHTS.search(name)]
    wanted = folder.named or _numbered(weights)
    yield _weights(key, folder, weights, wanted)


def _weights(key: str, folder: Folder, weights: Sequence[str], wanted: Sequence[str]) -> Line:
    pointers = [stat for stat in folder.small if stat.first.startswith(LFS)]
    if pointers:
        name = pointers[0].path.rpartition("/")[2]
        return bad(key, f"{len(pointers)} files are Git LFS pointers, {name} first", "git lfs pull")
    missing = [name for name in wanted if name not in folder.entries]
    if missing:
        seen = f"{len(missing)} of {len(wanted)} shards are missing, {missing[0]} first"
        return bad(key, seen, "download what is missing")
    empty = [name for name in (wanted or weights) if not folder.entries.get(name)]
    if empty:
        return bad(key, f"{len(empty)} weight files are empty, {empty[0]} first", "download them again")
    if not weights:
        return bad(key, f"{folder.path} has no weight files", "check the path; download the model")
    have = sum(folder.entries[name] for name in (wanted or weights))
    if folder.total_bytes is not None and wanted and have < folder.total_bytes:
        whole = gib(folder.total_bytes / 2**20)
        seen = f"{gib(have / 2**20)} of the {whole} that its index names: a shard is cut"
        return bad(key, seen, "compare file sizes with the source")
    count = len(wanted or weights)
    return ok(key, f"{count} weight file{'s' if count != 1 else ''}, {gib(have / 2**20)} in {folder.path}")


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Without an index: what ``model-00001-of-00064`` promises."""
    for name in names:
        match = _NUMBERED.match(name)
        if match:
            width, total = len(match["n"]), match["total"]
            return tuple(
                f"{match['stem']}{n:0{width}}-of-{total}{match['suffix']}" for n in range(1, int(total) + 1)
            )
    return ()


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a config."""
    for name in ("text_config", "language_config", "llm_config", "thinker_config"):
        part = config.get(name)
        if isinstance(part, dict):
            return part
    return config


def context_of(config: Mapping[str, Any]) -> int | None:
    """The context that an engine derives from a config, rope scaling included as SGLang does it."""
    config = text_config(config)
    scaling = config.get("rope_scaling")
    factor = 1.0
    if isinstance(scaling, dict):
        kind = scaling.get("rope_type", scaling.get("type"))
        if "original_max_position_embeddings" not in scaling and kind != "llama3":
            value = scaling.get("factor", 1)
            factor = float(value) if isinstance(value, (int, float)) else 1.0
    for name in _LENGTHS:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(factor * value)
    return None


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about drafts."""

    engine: str
    method: str = ""
    """As the engine calls it, lower case."""
    asked_context: int | None = None
    stretched: bool = False
    """The variable that makes a mismatch a warning is set."""
    patch_hint: str = ""


def draft_fits(draft: Folder, target: Folder, told: Speculation) -> Iterator[Line]:
    """Context, hidden size, vocabulary, architecture."""
    if draft.config is None or target.config is None:
        return
    ours, theirs = text_config(draft.config), text_config(target.config)
    yield _context(draft.config, target.config, told)
    wanted, hidden = theirs.get("hidden_size"), ours.get("target_hidden_size", ours.get("hidden_size"))
    shares = not told.method or bool(_DRAFT.search(told.method))
    if shares and isinstance(wanted, int) and isinstance(hidden, int) and wanted != hidden:
        yield bad(
            "draft", f"hidden size {hidden}, the target has {wanted}", "take the draft made for this target"
        )
    vocab, target_vocab = ours.get("vocab_size"), theirs.get("vocab_size")
    if isinstance(vocab, int) and isinstance(target_vocab, int) and vocab != target_vocab:
        line = bad if shares else warn
        yield line(
            "draft", f"vocabulary of {vocab}, the target has {target_vocab}", "take the draft made for it"
        )
    names = [str(name) for name in ours.get("architectures") or draft.config.get("architectures") or ()]
    if shares and told.method and names and not any(map(_DRAFT.search, names)):
        yield warn("draft", f"{names[0]} is no draft of {told.method.upper()}", "check the draft's path")


def _context(draft: Mapping[str, Any], target: Mapping[str, Any], told: Speculation) -> Line:
    derived, wanted = context_of(draft), told.asked_context or context_of(target)
    if derived is None or wanted is None:
        return unknown("draft", "a context length is not in its config")
    if derived >= wanted:
        return ok("draft", f"context {derived}, the target's is {wanted}")
    seen = f"its context is shorter than the target's: {derived} < {wanted}"
    if told.engine != "sglang":
        return warn("draft", seen, "acceptance may fall beyond it")
    if told.stretched:
        return warn("draft", f"{seen}; stretched by the environment", "acceptance may fall beyond it")
    hint = (
        "patch max_position_embeddings in its config.json, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
    )
    return bad("draft", seen, told.patch_hint or hint)
