"""What a server was started with, read once from the dump of its arguments."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from specdash.engines import schema
from specdash.monitor.numerals import whole
from specdash.monitor.words import Phase

_VALUE: Final = r"""(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^\s,(){}\[\]'"]+)"""
_NOTHING: Final = frozenset({"None", "null", "", "False", "false"})
_NUMBERS: Final = ("port", "tp", "pp", "dp", "ep", "nodes", "spec_steps")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a start's arguments. None: not told."""

    port: int | None = None
    bind: str | None = None
    model: str | None = None
    served_name: str | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    dp_inside_tp: bool = False
    nodes: int | None = None
    spec_method: str | None = None
    spec_steps: int | None = None
    spec_steps_word: str = "steps"
    spec_draft: str | None = None
    skipped: frozenset[Phase] = frozenset()
    """Phases that these arguments leave out."""

    @property
    def parallel(self) -> str | None:
        """``TP8``, ``TP8 PP2 DP4``; None where the arguments are not known."""
        if self.tp is None and self.pp is None and self.dp is None:
            return None
        sizes = (("TP", self.tp or 1), ("PP", self.pp or 1), ("DP", self.dp or 1), ("EP", self.ep or 1))
        return " ".join(f"{name}{size}" for name, size in sizes if size > 1 or name == "TP")

    @property
    def ranks(self) -> int | None:
        """Workers of this host's share of the server."""
        if self.tp is None:
            return None
        groups = 1 if self.dp_inside_tp else self.dp or 1
        return max(1, self.tp * (self.pp or 1) * groups // (self.nodes or 1))

    @property
    def speculation(self) -> str | None:
        """``EAGLE3 3 steps``."""
        if self.spec_method is None:
            return None
        steps = f" {self.spec_steps} {self.spec_steps_word}" if self.spec_steps else ""
        return self.spec_method.upper() + steps


def read_arguments(text: str, known: Facts, names: schema.Facts) -> Facts:
    """Add what a dump of arguments tells; what was told before and is not told now stays."""
    inner = ""
    if names.spec_within is not None:
        text, inner = _cut_out(text, names.spec_within)
    told = _pick(text, names)
    if names.spec_within is not None:
        # What is a draft's name inside is the target's outside.
        told = {field: value for field, value in told.items() if not field.startswith("spec_")}
        told |= {field: value for field, value in _pick(inner, names).items() if field.startswith("spec_")}
    values: dict[str, object] = {}
    for field, value in told.items():
        if field in _NUMBERS:
            if (number := whole(value)) is not None:
                values[field] = number
        elif field == "dp_inside_tp":
            values[field] = True
        else:
            values[field] = value
    skipped = {phase for name, phases in names.skip.items() if _is_true(name, text) for phase in phases}
    return msgspec.structs.replace(
        known, **values, skipped=known.skipped | skipped, spec_steps_word=names.spec_steps_word
    )


def _pick(text: str, names: schema.Facts) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _arguments(_all_names(names)).finditer(text):
        found.setdefault(match["name"], _plain(match["value"]))
    told: dict[str, str] = {}
    for field in (*_NUMBERS, "bind", "model", "served_name", "dp_inside_tp", "spec_method", "spec_draft"):
        for name in getattr(names, field):
            if found.get(name, "") not in _NOTHING:
                told[field] = found[name]
                break
    return told


def _all_names(names: schema.Facts) -> tuple[str, ...]:
    every: set[str] = set()
    for field in names.__struct_fields__:
        value = getattr(names, field)
        if isinstance(value, tuple):
            every.update(value)
    return tuple(sorted(every))


@lru_cache(maxsize=32)
def _arguments(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        rf"""(?<![\w.-])["']?(?P<name>{"|".join(map(re.escape, names))})["']?\s*[=:]\s*{_VALUE}"""
    )


def _plain(value: str) -> str:
    """Without quotes; of a list its first element."""
    value = value.strip("[] ")
    if value[:1] in ("'", '"'):
        return value[1:].split(value[0], 1)[0]
    return value.split(",", 1)[0].strip()


def _is_true(name: str, text: str) -> bool:
    return re.search(rf"""(?<![\w.-])["']?{re.escape(name)}["']?\s*[=:]\s*[Tt]rue\b""", text) is not None


def _cut_out(text: str, name: str) -> tuple[str, str]:
    """The text without the bracketed value of ``name``, and that value ("" where it has none)."""
    found = re.search(
        rf"""["']?{re.escape(name)}["']?\s*[=:]\s*(?:\w+)?[({{](?P<inner>[^)}}]*)[)}}]?""", text
    )
    if found is None:
        return text, ""
    return text[: found.start()] + text[found.end() :], found["inner"]
