"""Looking at a model folder on the host: config, index, shards, and what is in a shard's place."""

from __future__ import annotations

import json
import re
from typing import Any

from specdash.errors import RequestError
from specdash.operations.acts import Hands
from specdash.operations.checks import Line, bad, unknown, warn
from specdash.operations.checks_model import Folder
from specdash.operations.commandline import Asked
from specdash.operations.replies import Stat

SMALL = 4096
"""A weight file of so few bytes is none."""
INDEX_HEAD = 8192
_TOTAL = re.compile(rb'"total_size"\s*:\s*(\d+)')
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


async def look(hands: Hands, asked: Asked, model: str, key: str = "model") -> Folder | Line:
    """The folder of a model, or the line that says why there is none to look at."""
    path = asked.absolute(model)
    found = (await hands.stat_files([path]))[0]
    if not found.exists and _HUB_NAME.fullmatch(model):
        return await _from_hub(hands, asked, model, key)
    if not found.exists:
        return Folder(path=path, exists=False, error=found.error)
    if found.kind == "file":
        return unknown(key, f"{path} is one file: not looked into")
    return await _folder(hands, path, found)


async def _folder(hands: Hands, path: str, found: Stat) -> Folder:
    entries = dict(found.entries)
    config, error = await read_config(hands, path) if "config.json" in entries else (None, "missing")
    index = next((name for name in sorted(entries) if name.endswith(".index.json")), None)
    named: tuple[str, ...] = ()
    total: int | None = None
    if index:
        named = (await hands.stat_files([f"{path}/{index}"]))[0].shards
        total = await _total_of(hands, f"{path}/{index}")
    weights = [
        f"{path}/{name}" for name, size in entries.items() if size < SMALL and _looks_like_weights(name)
    ]
    small = await hands.stat_files(weights, head=64)
    return Folder(
        path=path, config=config, config_error=error, entries=entries, index=index, named=named,
        total_bytes=total, small=small,
    )  # fmt: skip


def _looks_like_weights(name: str) -> bool:
    return name.endswith((".safetensors", ".bin", ".pt", ".gguf"))


async def read_config(hands: Hands, path: str) -> tuple[dict[str, Any] | None, str | None]:
    """A model's config.json, or why there is none."""
    try:
        file = await hands.read_file(f"{path}/config.json")
    except RequestError as error:
        return None, error.message
    if not file.exists:
        return None, "missing"
    try:
        config = json.loads(file.bytes)
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
    return (config, None) if isinstance(config, dict) else (None, "not a JSON object")


async def _total_of(hands: Hands, path: str) -> int | None:
    """The total that an index's metadata names; it stands at its beginning or not at all."""
    try:
        head = (await hands.read_file(path, INDEX_HEAD)).bytes
    except RequestError:
        return None
    match = _TOTAL.search(head)
    return int(match[1]) if match else None


async def _from_hub(hands: Hands, asked: Asked, name: str, key: str) -> Folder | Line:
    """A name on the hub: its newest revision in the cache, where we know where the cache is."""
    env = asked.launch.env
    home = env.get("HF_HOME") or (f"{env['HOME']}/.cache/huggingface" if env.get("HOME") else None)
    hub = env.get("HF_HUB_CACHE") or (f"{home}/hub" if home else None)
    if hub is None:
        return unknown(key, f"{name} comes from the Hugging Face hub; where its cache lies is not known")
    folder = f"{hub}/models--{name.replace('/', '--')}"
    offline = env.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    try:
        revision = (await hands.read_file(f"{folder}/refs/main")).bytes.decode("ascii", "replace").strip()
    except RequestError as error:
        return unknown(key, f"{name}: {error.message}")
    path = f"{folder}/snapshots/{revision}"
    found = (await hands.stat_files([path]))[0] if revision else None
    if found is None or not found.exists:
        if offline:
            return bad(key, f"{name} is not in {hub}, and HF_HUB_OFFLINE is set", "download it first")
        return warn(key, f"{name} is not in {hub}", "the launch will download it first")
    return await _folder(hands, path, found)
