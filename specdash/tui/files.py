"""What the screens write on your own machine: in the state folder, for you alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

import platformdirs

from specdash import ownfiles


def state_folder() -> Path:
    """The program's state folder, made when needed; only you may look into it."""
    folder = platformdirs.user_state_path("specdash")
    with ownfiles.writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def shown(path: Path) -> str:
    """The path as a person writes it: ``~`` for the home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def write(name: str, data: bytes) -> Path:
    """Write a file, readable by you alone, in one step; returns where. Raises OSError.

    ``name`` may come from anywhere: it names a file in the state folder, whatever is in it.
    """
    name = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[-100:].lstrip(".-") or "unnamed"
    path = state_folder() / name
    part = path.with_name(f".{name}.{os.getpid()}")
    with ownfiles.writing(path):
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            return part.replace(path)
        finally:
            part.unlink(missing_ok=True)
