"""What differs between two starts of a server: its flags and its variables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specdash.operations.plan import Plan
from specdash.operations.work import Launch, Start


def launch_diff(before: Plan | None, now: Launch) -> tuple[str, ...]:
    """Lines with ``-`` and ``+``; nothing where no earlier start is known, or nothing differs."""
    old = (
        next((step.work.launch for step in before.steps if isinstance(step.work, Start)), None)
        if before
        else None
    )
    if old is None:
        return ()
    places = [{"folder": one.cwd or "", "log": one.log or "", "user": one.user or ""} for one in (old, now)]
    return (
        *_changed(_flags(old.argv), _flags(now.argv), " "),
        *_changed(dict(old.env), dict(now.env), "="),
        *_changed(places[0], places[1], ": "),
    )


def _flags(argv: Sequence[str]) -> dict[str, str]:
    """``--tp 8`` as a name and a value; what is no flag counts as one of its own."""
    out: dict[str, str] = {}
    name = ""
    for word in argv:
        if word.startswith("-"):
            name, _, value = word.partition("=")
            out[name] = value
        elif name:
            out[name] = f"{out[name]} {word}".strip()
        else:
            out[word] = ""
    return out


def _changed(old: dict[str, str], now: dict[str, str], between: str) -> Iterator[str]:
    for name in dict.fromkeys([*old, *now]):
        if old.get(name) != now.get(name):
            if name in old:
                yield f"- {name}{between}{old[name]}".rstrip()
            if name in now:
                yield f"+ {name}{between}{now[name]}".rstrip()
