"""What a measurement depends on, as fields with values, and what differs between two of them.

Everything comes from what was seen of the host: no field is guessed, and one that was not seen is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from specdash.monitor.serverparts import EnvRow
from specdash.monitor.state import Gpu, HostState, Server
from specdash.secrecy import redact

VARIANT: Final = ("flag ", "env ", "patched ", "speculation", "draft ")
"""Beginnings of the fields in which variants of a server are meant to differ."""
SIMULATED: Final = "simulated"
"""The field, and the tag, of runs on a simulated host: their figures are made up."""
_OWN: Final = frozenset(
    "--api-key --admin-api-key --log-file --log-level --log-level-http --host --port -p --nccl-port"
    " --dist-init-addr --served-model-name --master-port --ssl-keyfile-password".split()
)
"""Flags that change no speed, or differ by their nature from start to start."""
_LONG: Final = 200
_HOST: Final = frozenset({"host", "boot", "driver", "GPUs", "GPU ids"})
"""Fields that only a look at the host gives: with any of them it was looked at."""
_UNREAD: Final = "not read"
"""Beginning of a value that is a reason."""


class Difference(NamedTuple):
    """One field; None: that side was looked at and has none."""

    field: str
    ours: str | None
    theirs: str | None


def fingerprint(state: HostState, server: Server, argv: Sequence[str] = ()) -> dict[str, str]:
    """Of a server as it stands. ``argv``: its command line as it came through the door, secrets redacted."""
    cards = cards_of(state, server)
    found: dict[str, str | None] = {
        "host": state.host.name if state.host else None,
        SIMULATED: "yes" if state.host and state.host.simulated else None,
        "engine": server.engine,
        "version": server.version,
        "model": server.model,
        "speculation": server.speculation,
        "parallel": server.parallel,
        "driver": state.driver,
        "GPUs": _names(cards),
        "GPU ids": " ".join(sorted(c.card.uuid for c in cards if c.card.uuid)) or None,
        "power limit": _limits(cards),
        "MIG": "on" if any(c.card.mig for c in cards) else None,
        "container": state.host.container if state.host else None,
        "boot": state.host.boot if state.host else None,
    }
    out = {field: value for field, value in found.items() if value}
    out.update(_flags(argv))
    out.update((f"env {row.name}", _variable(row)) for row in server.environment)
    return {field: _told(field, value) for field, value in out.items()}


def cards_of(state: HostState, server: Server) -> list[Gpu]:
    """The cards that the server uses; all of them where none is known to be its own."""
    wanted = {index for rank in server.ranks for index in rank.gpus}
    own = [
        gpu
        for gpu in state.gpus
        if gpu.card.index in wanted or any(owner.server == server.key for owner in gpu.owners)
    ]
    return own or list(state.gpus)


def launch_of(state: HostState, server: Server) -> str:
    """Which start of a server: equal for all runs of it, on whichever day they are made."""
    boot = state.host.boot if state.host else state.target
    return f"{boot}/{server.key}"


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[Difference, ...]:
    """Field by field, in the order of the first; boots and ids of starts are no difference.

    A field that one side did not look at is none either: see :func:`not_seen`.
    """
    return tuple(one for one in _apart(ours, theirs) if not _blind(one, ours, theirs))


def not_seen(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields known of one side alone since nobody looked at the other: those of ours, those of theirs."""
    blind = [one for one in _apart(ours, theirs) if _blind(one, ours, theirs)]
    return (
        tuple(one.field for one in blind if not _told_of(one.ours)),
        tuple(one.field for one in blind if not _told_of(one.theirs)),
    )


def _apart(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[Difference]:
    fields = dict.fromkeys((*ours, *theirs))
    return [
        Difference(field, ours.get(field), theirs.get(field))
        for field in fields
        if field != "boot" and ours.get(field) != theirs.get(field)
    ]


def _blind(one: Difference, ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    sides = ((one.ours, ours), (one.theirs, theirs))
    return any(not _told_of(value) and not _has_none(one.field, value, of) for value, of in sides)


def _told_of(value: str | None) -> bool:
    return value is not None and not value.startswith(_UNREAD)


def _has_none(field: str, value: str | None, of: Mapping[str, str]) -> bool:
    """Whether it was looked at and there is none, as with a flag that is not set."""
    on_host = not _HOST.isdisjoint(of)
    if value is not None:
        return False
    if field.startswith("flag ") and not field.startswith("flag -"):  # an engine's resolved arguments
        return any(known.startswith("flag ") and not known.startswith("flag -") for known in of)
    if field.startswith(("flag -", "env ", "patched ")) or field in ("MIG", "container"):
        return on_host or any(known.startswith(field[:5]) for known in of)
    if field == "speculation":
        return on_host or any(known.startswith("flag ") for known in of)
    if field == "held back by":
        return "SM clock" in of
    if field.startswith("package "):
        return any(known.startswith("package ") for known in of)
    if field.startswith(("model ", "draft ")):
        return any(known.startswith("model ") and _told_of(told) for known, told in of.items())
    return False


def unwanted(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[str, ...]:
    """Fields that differ although no variant is made of them: driver, version, host, cards."""
    if not ours or not theirs:
        return ()
    return tuple(
        one.field
        for one in differences(ours, theirs)
        if not one.field.startswith(VARIANT) and one.ours is not None and one.theirs is not None
    )


def _told(field: str, value: str) -> str:
    """What may be kept of a value: nothing secret, and no novel."""
    name = field.rpartition(" ")[2]
    return redact(f"{name}={value}").partition("=")[2][:_LONG]


def _flags(argv: Sequence[str]) -> dict[str, str]:
    """Each flag with its values; a flag without one is ``set``."""
    out: dict[str, str] = {}
    name = ""
    for word in argv[1:]:
        if word.startswith("-") and not _number(word):
            name, equals, value = word.partition("=")
            if name not in _OWN:
                out[f"flag {name}"] = value if equals else "set"
        elif name and name not in _OWN:
            before = out.get(f"flag {name}", "set")
            out[f"flag {name}"] = word if before == "set" else f"{before} {word}"
    return out


def _number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()


def _variable(row: EnvRow) -> str:
    """``Ring``, or what became of it: ``Ring (TP0–TP3 missing)``."""
    value = row.main.value or next((c.value for c in row.cells.values() if c.value), None) or "?"
    odd = [rank for rank, cell in row.cells.items() if cell.state in ("missing", "rewritten")]
    if not odd:
        return value
    where = odd[0] if len(odd) == 1 else f"{odd[0]}–{odd[-1]}"
    states = {row.cells[rank].state for rank in odd}
    return f"{value} ({where} {' or '.join(sorted(states))})"


def _names(cards: Sequence[Gpu]) -> str | None:
    names = Counter(gpu.card.name for gpu in cards if gpu.card.name)
    return ", ".join(f"{count} × {name}" for name, count in sorted(names.items())) or None


def _limits(cards: Sequence[Gpu]) -> str | None:
    limits = sorted({round(gpu.card.power_limit_w) for gpu in cards if gpu.card.power_limit_w})
    return " ".join(f"{limit} W" for limit in limits) or None
