"""Build and drive the NVML test double.

    stub = NvmlStub(tmp_path, build(tmp_path / "lib"))
    stub.write(gpus=8, gpu={"util": 97}, by_index={1: {"processes": [(4242, 76000)]}})
    subprocess.run([...], env=os.environ | stub.env())

pynvml loads the name "libnvidia-ml.so.1" through the dynamic loader, which reads LD_LIBRARY_PATH when the
process starts: the code under test must run in a child process that was given ``env()``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

SOURCE = Path(__file__).resolve().parent

Value: TypeAlias = "str | int | float | Iterable[tuple[int, int | str]]"
Section: TypeAlias = "Mapping[str, Value]"


def build(out: Path, api: int = 999) -> Path:
    """Compile the library into ``out`` and return that folder, for LD_LIBRARY_PATH.

    ``api`` is a driver branch (470, 525, …): symbols of newer branches are left out.
    """
    out.mkdir(parents=True, exist_ok=True)
    flags = [
        "-O1",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-pthread",
    ]
    sources = [str(SOURCE / "nvml_api.c"), str(SOURCE / "config.c")]
    soname = "-Wl,-soname,libnvidia-ml.so.1"
    target = ["-o", str(out / "libnvidia-ml.so.1")]
    subprocess.run(["gcc", *flags, f"-DNVMLSTUB_API={api}", soname, *target, *sources], check=True)
    return out


class NvmlStub:
    """One configuration file, one call log, and the environment that leads a child process to both."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.library = library
        self.config = folder / "nvml.ini"
        self.log = folder / "nvml.log"
        self.write()

    def env(self) -> dict[str, str]:
        """What to add to the child's environment."""
        path = os.pathsep.join(filter(None, [str(self.library), os.environ.get("LD_LIBRARY_PATH", "")]))
        return {"LD_LIBRARY_PATH": path, "NVMLSTUB_CONFIG": str(self.config), "NVMLSTUB_LOG": str(self.log)}

    def write(
        self,
        *,
        gpus: int = 8,
        gpu: Section | None = None,
        by_index: Mapping[int, Section] | None = None,
        faults: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the configuration; processes that have the library loaded see it at their next call."""
        sections: dict[str, Section] = {"system": {"gpus": gpus}, "gpu": gpu or {}, "fault": faults or {}}
        sections.update({f"gpu.{index}": values for index, values in (by_index or {}).items()})
        lines = []
        for title, values in sections.items():
            lines.append(f"[{title}]")
            lines += [f"{key} = {_text(value)}" for key, value in values.items()]
        fresh = self.config.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.config)  # never half a file

    def calls(self) -> list[tuple[str, int, int]]:
        """The finished calls so far: function, GPU (-1: none), result code."""
        rows = (line.split() for line in self.log.read_text().splitlines())
        return [(row[1], int(row[2]), int(row[3])) for row in rows]


def _text(value: Value) -> str:
    """A process list is an iterable of (pid, MiB or "na"); anything else is its own text."""
    if isinstance(value, str | int | float):
        return str(value)
    return ", ".join(f"{pid}:{mib}" for pid, mib in value)
