"""One line of a preflight: what was looked at, what was seen, what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from specdash.monitor.documents import SCHEMA, Document

Mark: TypeAlias = Literal["ok", "warning", "error", "unknown"]
GLYPHS: Final[dict[Mark, str]] = {"ok": "✓", "warning": "▲", "error": "✖", "unknown": "?"}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One check."""

    key: str
    """What ``--force`` calls it: ``gpus``, ``port``, ``model``, ``draft`` …"""
    mark: Mark
    seen: str
    do: str | None = None
    """What helps, where it is not fine."""


def told(line: Line) -> str:
    """As a person reads it."""
    help_ = f" — {line.do}" if line.do and line.mark != "ok" else ""
    return f"{GLYPHS[line.mark]} {line.key}: {line.seen}{help_}"


def passes(line: Line, forced: Sequence[str]) -> bool:
    """It stops no launch: not red, or forced. What cannot be seen accuses nobody."""
    return line.mark != "error" or line.key in forced


def ok(key: str, seen: str) -> Line:
    """Fine."""
    return Line(key=key, mark="ok", seen=seen)


def warn(key: str, seen: str, do: str | None = None) -> Line:
    """Worth knowing; stops nothing."""
    return Line(key=key, mark="warning", seen=seen, do=do)


def bad(key: str, seen: str, do: str | None = None) -> Line:
    """Stops a launch."""
    return Line(key=key, mark="error", seen=seen, do=do)


def unknown(key: str, seen: str) -> Line:
    """Could not be seen."""
    return Line(key=key, mark="unknown", seen=seen)


def gib(mib: float) -> str:
    """Memory or disk as the screens say it."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


class LinesDocument(Document, frozen=True, kw_only=True):
    """What ``check`` and ``doctor`` print with ``--json``."""

    schema: int = SCHEMA
    checks: tuple[Line, ...]
    ok: bool


def lines_document(lines: Sequence[Line]) -> str:
    """As text."""
    document = LinesDocument(checks=tuple(lines), ok=all(passes(line, ()) for line in lines))
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
