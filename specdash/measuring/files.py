"""What a benchmark depends on and only the host's files tell: models, draft, templates, packages.

Asked once before the runs, by requests that only read. What cannot be read says why; nothing is guessed.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

from specdash.errors import SpecdashError
from specdash.monitor.state import Server
from specdash.operations import commandline, found, modelfolder
from specdash.operations.acts import Acts, Hands
from specdash.operations.checks_model import Folder
from specdash.operations.commandline import Asked
from specdash.operations.sight import look

LIMIT_S: Final = 30.0
"""A file system that hangs must not keep a benchmark from beginning."""
PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "sglang": (
        "sglang",
        "sgl-kernel",
        "flashinfer-python",
        "torch",
        "triton",
        "transformers",
        "nvidia-nccl-cu12",
    ),
    "vllm": ("vllm", "flashinfer-python", "torch", "triton", "transformers", "nvidia-nccl-cu12"),
}
SMALL_FILES: Final = (
    ("config", "config.json"),
    ("generation defaults", "generation_config.json"),
    ("tokenizer", "tokenizer.json"),
    ("tokenizer config", "tokenizer_config.json"),
    ("chat template", "chat_template.jinja"),
)
"""Field → file: each decides what is generated, and so how fast."""
_WEIGHTS: Final = (".safetensors", ".bin", ".pt", ".gguf")
_COMMIT: Final = re.compile(r"\+g?([0-9a-f]{7,40})\b")


@runtime_checkable
class Asking(Acts, Protocol):
    """A host that answers requests; a picture alone does not."""


async def facts_of_files(host: object, server: Server) -> dict[str, str]:
    """Field → value for the fingerprint; nothing where the host cannot be asked."""
    if not isinstance(host, Asking):
        return {}
    try:
        return await asyncio.wait_for(_facts(Hands(host), server), LIMIT_S)
    except asyncio.TimeoutError:
        return {"model files": f"not read: no answer for {LIMIT_S:.0f} s"}
    except SpecdashError as error:
        return {"model files": f"not read: {error.message}"}


async def _facts(hands: Hands, server: Server) -> dict[str, str]:
    sight = await look(hands, server)
    asked = commandline.read(found.launch_of(hands.state, sight).launch)
    out: dict[str, str] = {}
    for key, model in (("model", asked.model or server.model), ("draft", asked.draft)):
        if model:
            out.update(await _model(hands, asked, model, key))
    out.update(await _packages(hands, server, asked))
    return out


async def _model(hands: Hands, asked: Asked, model: str, key: str) -> dict[str, str]:
    """A model's files: small ones by their bytes, weights by their index, names, sizes and times."""
    folder = await modelfolder.look(hands, asked, model, key)
    if not isinstance(folder, Folder):
        return {f"{key} files": f"not read: {folder.seen}"}
    if not folder.exists:
        return {f"{key} files": f"not read: {folder.error or 'there is no such folder'}"}
    out = {}
    for field, name in SMALL_FILES:
        if name in folder.entries:
            out[f"{key} {field}"] = await _digest(hands, f"{folder.path}/{name}", folder.entries[name])
    weights = await _weights(hands, folder)
    return {**out, **({f"{key} weights": weights} if weights else {})}


async def _digest(hands: Hands, path: str, size: int) -> str:
    """Of all bytes, or of the first and the size: a vocabulary may be larger than what one answer holds."""
    file = await hands.read_file(path)
    if file.sha256:
        return f"sha256 {file.sha256[:16]}"
    return f"{size:,} bytes, the first {len(file.bytes):,}: {hashlib.sha256(file.bytes).hexdigest()[:16]}"


async def _weights(hands: Hands, folder: Folder) -> str | None:
    """``4 files, 34.6 GiB, 1f3a…``: the last is of the index and of each file's name, size and time."""
    names = sorted(name for name in folder.entries if name.endswith(_WEIGHTS))
    if not names:
        return None
    mark = hashlib.sha256()
    if folder.index:
        mark.update((await hands.read_file(f"{folder.path}/{folder.index}")).bytes)
    for stat in await hands.stat_files([f"{folder.path}/{name}" for name in names]):
        mark.update(f"{posixpath.basename(stat.path)} {stat.size} {stat.mtime}\n".encode())
    size = sum(folder.entries[name] for name in names) / (1 << 30)
    amount = f"{size:.1f} GiB" if size >= 0.1 else f"{1024 * size:.1f} MiB"
    return f"{len(names)} file{'' if len(names) == 1 else 's'}, {amount}, {mark.hexdigest()[:16]}"


async def _packages(hands: Hands, server: Server, asked: Asked) -> dict[str, str]:
    """Versions in the server's own interpreter, and the commit where the engine's version names it."""
    names = PACKAGES.get(server.engine, ("torch",))
    python = await asked.python(hands) if asked.launch.argv else None
    if python is None:
        return _commit(server.version)
    told = (await hands.probe(modules=names, python=python)).python
    if told is None:
        return _commit(server.version)
    out = {f"package {name}": version for name, version in told.modules.items() if version}
    if told.version:
        out["python"] = told.version
    return {**out, **_commit(out.get(f"package {server.engine}"), server.version)}


def _commit(*versions: str | None) -> dict[str, str]:
    """``0.9.2.dev3+gabcdef12`` was built of that commit; a version without one says nothing."""
    for version in versions:
        if version and (match := _COMMIT.search(version)):
            return {"engine commit": match[1]}
    return {}
