"""What a shell may complete: hosts, servers, variants, benchmarks, runbooks, themes. Only looked at files.

Never fails and never connects: a profile that cannot be read has nothing to offer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from specdash.errors import SpecdashError
from specdash.profile.document import Profile
from specdash.profile.loading import load

_SSH: Final = (Path(os.path.expanduser("~/.ssh/config")), Path("/etc/ssh/ssh_config"))  # noqa: PTH111


def teach(name: str, command: click.Command) -> None:
    """Let the words of this command be completed; only while a shell asks."""
    for parameter in command.params:
        known = _KNOWN.get(parameter.name or "")
        if parameter.name == "name" and name != "runbook":
            known = None
        if known is not None and not isinstance(parameter.type, click.Choice):
            parameter.type = _Words(known)


def hosts(profile: Profile) -> Iterable[str]:
    """Names of the profile, aliases of ssh, this machine."""
    from specdash.remote.aliases import aliases

    return (*profile.hosts, *aliases(_SSH), "local")


def themes(profile: Profile) -> Iterable[str]:
    """Ours and the operator's."""
    from specdash.tui.themes import load_all

    return sorted(load_all()[0])


def topics(profile: Profile) -> Iterable[str]:
    """The pages of help."""
    from specdash.help import TOPICS

    return TOPICS


def runbooks(profile: Profile) -> Iterable[str]:
    """The profile's and ours."""
    from specdash.runbooks.book import books

    return books(profile)


_KNOWN: Final[Mapping[str, Callable[[Profile], Iterable[str]]]] = {
    "target": hosts,
    "targets": hosts,
    "jump": hosts,
    "host": hosts,
    "server": lambda profile: profile.servers,
    "variant": lambda profile: profile.variants,
    "baseline": lambda profile: profile.variants,
    "campaign": lambda profile: profile.variants,
    "benchmark": lambda profile: profile.benchmarks,
    "names": lambda profile: profile.notify,
    "theme": themes,
    "topic": topics,
    "name": runbooks,
}
"""Parameter → the words that it may have."""


class _Words(StringParamType):
    """Any word at all; these are offered."""

    def __init__(self, known: Callable[[Profile], Iterable[str]]) -> None:
        self._known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Those that begin so; behind a comma each word for itself."""
        before, comma, begun = incomplete.rpartition(",")
        offered: dict[str, None] = {}
        with contextlib.suppress(SpecdashError, OSError):
            offered = dict.fromkeys(self._known(_profile(ctx)))
        return [CompletionItem(f"{before}{comma}{word}") for word in offered if word.startswith(begun)]


def _profile(ctx: click.Context) -> Profile:
    """The one that counts; an empty one where it has mistakes."""
    try:
        return load(ctx.params.get("profile"))
    except (SpecdashError, OSError):
        return Profile()
