"""Runs on the host, first of all: puts the sent modules into Python's import system and starts the agent.

Standard library only, Python 3.6 syntax. It is sent as text and executed there; nothing is written to
the disk. Tracebacks show source lines, because ``linecache`` asks a module's loader for its text.
"""

import importlib
import importlib.abc
import importlib.util
import os
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class SentModules(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads the modules that were sent; asked before the disk, so ours win over installed ones."""

    def __init__(self, sources: "dict[str, str]") -> None:
        self.sources = sources

    def is_package(self, fullname: str) -> bool:
        """Tell a package by the modules inside it."""
        return any(name.startswith(fullname + ".") for name in self.sources)

    def find_spec(self, fullname: str, path: "Any" = None, target: "Any" = None) -> "ModuleSpec | None":
        """Claim the sent modules and no other."""
        if fullname not in self.sources:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=self.file(fullname))

    def file(self, fullname: str) -> str:
        """Name the module as a traceback shows it."""
        return "<sent>/" + fullname.replace(".", "/") + ".py"

    def get_source(self, fullname: str) -> str:
        """Give the text, for the import and for tracebacks."""
        return self.sources[fullname]

    def exec_module(self, module: "ModuleType") -> None:
        """Run the module's text in the module."""
        name = module.__name__
        exec(compile(self.sources[name], self.file(name), "exec"), module.__dict__)


def take_streams() -> "tuple[int, int]":
    """Move stdin and stdout away from 0 and 1, so that no child and no stray print touches the frames."""
    frames_in, frames_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    one, two = os.fstat(1), os.fstat(2)
    if (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino):
        os.dup2(null, 2)  # a start-up file said 2>&1: a traceback would break a frame
    os.dup2(null, 0)
    os.dup2(2, 1)
    return frames_in, frames_out


def start(modules: "dict[str, str]", options: "dict[str, Any]") -> None:
    """Start the agent; returns when it ends."""
    sys.meta_path.insert(0, SentModules(modules))
    frames_in, frames_out = take_streams()
    try:
        importlib.import_module("specdash.agent.main").main(frames_in, frames_out, options)
    except Exception:
        traceback.print_exc()  # Python's own last words before 3.13 would not ask linecache
        sys.exit(1)
