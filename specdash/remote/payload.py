"""What is sent to the host: the agent, NVML's Python binding and the loader, as one block of bytes.

The modules are read from the installed package, so that a wheel, an editable install and a zipped one
send the same. The host needs no package and keeps no file.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdash import __version__
from specdash.errors import SpecdashError


@functools.cache
def agent_modules() -> Mapping[str, str]:
    """Name -> source of everything the agent imports that is not in the standard library."""
    modules = {"specdash": f"__version__ = {__version__!r}\n", "pynvml": _pynvml()}
    for file in importlib.resources.files("specdash.agent").iterdir():
        if file.name.endswith(".py") and file.name != "__main__.py":
            name = "specdash.agent." + file.name[: -len(".py")]
            modules[name.removesuffix(".__init__")] = file.read_text(encoding="utf-8")
    return modules


def _pynvml() -> str:
    """NVML's binding as nvidia-ml-py installs it; it is read, not imported."""
    try:
        path = importlib.metadata.distribution("nvidia-ml-py").locate_file("pynvml.py")
        return Path(str(path)).read_text(encoding="utf-8")
    except (importlib.metadata.PackageNotFoundError, OSError) as error:
        raise SpecdashError(
            f"nvidia-ml-py is not installed as expected: {error}", "install specdash again"
        ) from None


@functools.cache
def payload() -> bytes:
    """The block for the modules as installed; built once, about 155 KB."""
    return pack(agent_modules())


def pack(modules: Mapping[str, str]) -> bytes:
    """Compress modules and the loader into one block; another ``pynvml`` makes a simulated host."""
    loader = importlib.resources.files("specdash.remote").joinpath("loader.py").read_text(encoding="utf-8")
    block = {"loader": loader, "modules": dict(modules)}
    return zlib.compress(json.dumps(block).encode(), 9)


def unpack(block: bytes) -> dict[str, str]:
    """Give the modules of a block back."""
    modules: dict[str, str] = json.loads(zlib.decompress(block))["modules"]
    return modules


def parcel(block: bytes, options: Mapping[str, Any]) -> bytes:
    """What is written to the host after the magic line: two lengths, the options as JSON, the block."""
    head = json.dumps(dict(options)).encode()
    return b"%d %d\n" % (len(head), len(block)) + head + block
