"""The tables of the help pages, each from the code or data that it is about."""

from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from specdash.profile.loading import shown_path

ROOMS: Final = (
    *("agent", "remote", "intake", "engines", "monitor", "logs", "session", "operations", "profile"),
    *("history", "alerting", "bench", "measuring", "runbooks", "reports", "tui", "commands", "help", "sim"),
)
"""The rooms, as data walks through them; those that stand beside it last."""


def keys(width: int) -> Iterator[str]:
    """The keys that exist, by group."""
    from specdash.tui.actions import ACTIONS, GROUP_TITLES

    for group, title in GROUP_TITLES.items():
        yield title
        for action in ACTIONS:
            if action.group == group and action.available:
                risk = "" if action.risk == "read" else f" [{action.risk}]"
                yield from _row(action.label, f"{action.help}{risk}", 10, width, indent=2)
        yield ""


def profile(width: int) -> Iterator[str]:
    """Every table of the profile, from its types."""
    from specdash.profile.schema import sections

    for section in sections():
        yield from _row("", f"{section.title}  {section.about}".rstrip(), 0, width)
        for key in section.keys:
            need = " (needed)" if key.required else ""
            yield from _row(key.name, f"{key.kind}{need}. {key.about}", 17, width, indent=2)
        yield ""


def conditions(width: int) -> Iterator[str]:
    """What a condition may name."""
    from specdash.monitor.words import PHASES
    from specdash.profile.conditions import NAMES, STATES

    yield from _row("names", ", ".join(NAMES), 10, width)
    yield from _row("state", ", ".join(STATES), 10, width)
    yield from _row("phase", ", ".join(PHASES), 10, width)


def shipped(width: int) -> Iterator[str]:
    """The runbooks that come with specdash."""
    from specdash.profile.document import Profile
    from specdash.runbooks.book import books, title_of

    for book in books(Profile()).values():
        yield from _row(book.name, book.about or "", 20, width)
        yield from _row("", "; ".join(dict.fromkeys(map(title_of, book.steps))), 20, width)


def limits(width: int) -> Iterator[str]:
    """How long each phase may be quiet, and what counts as life in it."""
    from specdash.engines.common import default_limits

    for phase, row in default_limits().phase.items():
        more = row.stalled_several_hosts_s
        hosts = f" ({more:g} s on several hosts)" if more else ""
        told = (
            f"suspect {row.suspect_s:g} s, stalled {row.stalled_s:g} s{hosts}. Life: {', '.join(row.life)}."
        )
        ignored = f" Not: {', '.join(row.ignored)}." if row.ignored else ""
        yield from _row(phase, told + ignored, 11, width)


def engines(width: int) -> Iterator[str]:
    """Every engine that is known on this machine, yours too."""
    from specdash.engines.loader import GENERIC
    from specdash.intake.rules import default_rules
    from specdash.monitor.spans import count as counted

    for grammar in default_rules().grammars:
        if grammar.name != GENERIC:
            spec = grammar.spec
            lines = counted(len(spec.marker), "kind of line", "kinds of line")
            own = counted(len(spec.signature), "failure", "failures")
            told = f"{spec.title}: {lines}, {own} of its own"
            yield from _row(grammar.name, told, 14, width)


def failures(width: int) -> Iterator[str]:
    """Why a host cannot be reached, from the one table of these sentences."""
    from specdash.remote.errors import FAILURES

    for key, row in FAILURES.items():
        yield from _entry(
            _open(row.sentence.removeprefix("{host}: ")), row.usual or row.hint or "", key, width
        )


def diagnoses(width: int) -> Iterator[str]:
    """What the log, the kernel and the GPUs give away, from the engines' data; harmless ones last."""
    from specdash.engines.common import default_book

    meanings = default_book().meanings
    for severity in ("error", "warning", "info"):
        for key, meaning in meanings.items():
            if meaning.severity == severity:
                own = [each for name, rows in meaning.remedy_of.items() for each in _of(name, rows)]
                remedy = "; ".join([*meaning.remedy, *own])
                mark = {"error": "✖", "warning": "▲"}.get(severity, "·")
                yield from _entry(f"{mark} {_open(meaning.says)}", remedy, key, width)


def commands(width: int) -> Iterator[str]:
    """Every command with its sentence."""
    from specdash.commands import COMMANDS

    for name, says in COMMANDS.items():
        yield from _row(name, says, 12, width)


def rooms(width: int) -> Iterator[str]:
    """Every room of the package: what it is, and what it may touch, by its own docstring."""
    for name in ROOMS:
        about = importlib.import_module(f"specdash.{name}").__doc__ or ""
        touches = re.search(r"^May touch: (.+)$", about, re.MULTILINE)
        for head, text in (
            (name, about.partition("\n")[0]),
            ("", f"touches {touches[1]}" if touches else ""),
        ):
            yield from _row(head, text.replace("``", "`"), 12, width)


def _of(engine: str, rows: tuple[str, ...]) -> Iterator[str]:
    return (f"{engine}: {row}" for row in rows)


def _entry(says: str, remedy: str, key: str, width: int) -> Iterator[str]:
    """A message and what to do; nothing where the message is all facts."""
    if says == "…":
        return
    yield from _row("", f"{says}  [{key}]", 0, width)
    if _open(remedy) not in ("", "…"):
        yield from _row("  →", _open(remedy), 4, width)


def _open(text: str) -> str:
    """A sentence whose facts come later."""
    apart = re.sub(r"(?<=\w)\{[a-z_:]+\}", " …", text)
    return re.sub(r"\{[a-z_:]+\}", "…", apart)


def _row(head: str, text: str, wide: int, width: int, indent: int = 0) -> Iterator[str]:
    """A name and what is said of it, which goes on under itself."""
    first = f"{' ' * indent}{head:<{wide}}"
    if wide and not first.endswith(" "):
        first += " "
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * max(indent + wide, 2),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _engine_folder() -> str:
    from specdash.intake.ownengines import folder

    return shown_path(folder())


def _keys_file() -> str:
    from specdash.tui.keymap import place

    return shown_path(place())


def _state_folder() -> str:
    import platformdirs

    return shown_path(platformdirs.user_state_path("specdash"))


def _profile_places() -> str:
    from specdash.profile.document import FILE
    from specdash.profile.loading import places

    return f"./{FILE}, then {shown_path(places()[-1])}"


def _capture() -> str:
    from specdash.engines.common import default_limits

    row = default_limits().phase["capture"]
    return f"{row.suspect_s:g} seconds make it suspect, {row.stalled_s:g} a stall"


def _learning() -> str:
    from specdash.engines.common import default_limits

    learning = default_limits().learning
    return f"{learning.gap_factor:g} times the longest silence seen, at least {learning.least_s:g} s"


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


def _bench(name: str) -> Callable[[], str]:
    def told() -> str:
        from specdash.bench import verdict

        return _percent(getattr(verdict, name))

    return told


def _pairs() -> str:
    from specdash.bench.verdict import PAIRS

    return str(PAIRS)


def _exit_codes() -> str:
    from specdash.commands import EXIT_CODES

    return " ".join(EXIT_CODES.replace("\b", "").split()).removeprefix("Exit codes: ")


TABLES: Final[Mapping[str, Callable[[int], Iterator[str]]]] = {
    "keys": keys,
    "profile": profile,
    "conditions": conditions,
    "shipped": shipped,
    "limits": limits,
    "engines": engines,
    "failures": failures,
    "diagnoses": diagnoses,
    "commands": commands,
    "rooms": rooms,
}
"""What a line ``{{name}}`` of a page stands for."""

FIGURES: Final[Mapping[str, Callable[[], str]]] = {
    "engine folder": _engine_folder,
    "keys file": _keys_file,
    "state folder": _state_folder,
    "profile places": _profile_places,
    "capture": _capture,
    "learning": _learning,
    "matters": _bench("MATTERS"),
    "alike": _bench("ALIKE"),
    "launches": _bench("LAUNCH_SD"),
    "errors": _bench("MOST_ERRORS"),
    "throttled": _bench("MOST_THROTTLED"),
    "pairs": _pairs,
    "exit codes": _exit_codes,
}
"""What ``{{name}}`` within a line stands for."""
