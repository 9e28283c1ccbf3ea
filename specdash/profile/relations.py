"""What belongs to what in a profile: names that must exist, keys that exclude each other, and no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from specdash.profile.document import Mistake, Profile
from specdash.profile.lines import line_of
from specdash.profile.steps import runbook_mistakes
from specdash.secrecy import redact
from specdash.wording import nearest

_Wrong: TypeAlias = tuple[str, str]
"""A key, and what is wrong with it."""
_SECRET: Final = "a secret is never kept in a profile"


def relations(profile: Profile, lines: Mapping[str, int]) -> Iterator[Mistake]:
    """What no single table can be wrong about."""
    parts = (_names(profile), _either(profile), _secrets(profile), _benchmarks(profile))
    for key, says in (each for part in parts for each in part):
        yield Mistake(key=key, line=line_of(lines, key), says=says)
    yield from runbook_mistakes(profile, lines)


def _names(profile: Profile) -> Iterator[_Wrong]:
    hosts: dict[str, tuple[str, ...]]
    hosts = {f"servers.{name}.host": (server.host,) for name, server in profile.servers.items()}
    hosts |= {f"notify.{name}.hosts": rule.hosts for name, rule in profile.notify.items()}
    for key, names in hosts.items():
        for host in names:
            if host not in profile.hosts:
                yield key, f"there is no [hosts.{host}]{nearest(host, profile.hosts)}"
    for name, variant in profile.variants.items():
        if variant.server not in profile.servers:
            says = f"there is no [servers.{variant.server}]{nearest(variant.server, profile.servers)}"
            yield f"variants.{name}.server", says


def _either(profile: Profile) -> Iterator[_Wrong]:
    for name, server in profile.servers.items():
        if server.api_key_command and server.api_key_env:
            yield f"servers.{name}.api_key_command", "give this or api_key_env, one of them"
    for name, rule in profile.notify.items():
        if (rule.url_env is None) == (rule.url_command is None):
            yield f"notify.{name}", "give url_env or url_command, one of them: never the address"


def _secrets(profile: Profile) -> Iterator[_Wrong]:
    """Keys, tokens and passwords among variables and the words of commands, by their name or their look."""
    variables = {f"servers.{name}.env": server.env for name, server in profile.servers.items()}
    variables |= {f"variants.{name}.env": variant.env for name, variant in profile.variants.items()}
    for path, env in variables.items():
        for variable, value in env.items():
            if redact(f"{variable}={value}") != f"{variable}={value}":
                yield f"{path}.{variable}", f"{_SECRET}: export it on the host"
    commands = {f"servers.{name}.command": server.command for name, server in profile.servers.items()}
    commands |= {f"variants.{name}.args": variant.args for name, variant in profile.variants.items()}
    commands |= {f"benchmarks.{name}.command": own.command or () for name, own in profile.benchmarks.items()}
    for key, words in commands.items():
        if redact(" ".join(words)) != " ".join(words):
            yield key, f"{_SECRET}: leave the option out, and export its variable on the host"


def _benchmarks(profile: Profile) -> Iterator[_Wrong]:
    for name, bench in profile.benchmarks.items():
        path = f"benchmarks.{name}"
        if bench.command is None and not bench.concurrency and bench.rate is None:
            yield path, "give concurrency or rate, or a command of your own"
        if bench.command is not None and bench.concurrency:
            yield f"{path}.concurrency", "means nothing beside a command of your own"
        if bench.tok_s is not None:
            yield from ((f"{path}.tok_s", says) for says in _expression(bench.tok_s))


def _expression(text: str) -> Iterator[str]:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        yield f"no regular expression: {error}"
        return
    if groups != 1:
        yield f"needs one group in parentheses for the number, has {groups}"
