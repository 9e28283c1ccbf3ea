"""The profile, ``specdash.toml``: hosts, servers, variants, benchmarks, runbooks; typed, and checked whole.

A mistake names the file, the key, the line and the nearest right word. Unknown keys are mistakes, and so is
an API key: a profile names where the key is, never the key. ``cleanup_via``, ``launcher`` and the rest are
described in ``specdash config schema``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from specdash.secrecy import redact

FILE = "specdash.toml"
SCHEMA = 1

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Words: TypeAlias = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
Launcher: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^(process|systemd:[\w.@:-]+|docker:[\w.-]+|tmux:[\w-]+)$")
]
Within: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)?\s*(s|m|h)$")]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table: a misspelt key is a mistake, not a silent default."""


class Host(Table, frozen=True, kw_only=True):
    """``[hosts.NAME]``: a machine."""

    target: Text
    """``[user@]host[:port]``, an alias of ssh_config, or ``local``."""
    cleanup_via: Text | None = None
    """A second target for cleaning, where the server lives in a container."""
    watch: bool = False
    """Only look: no key and no command that changes anything."""
    theme: Text | None = None
    """Its colours; ``specdash themes`` names them."""
    production: bool = False
    """Kill, clean, restart, patch and undo need the host's name typed."""


class Needs(Table, frozen=True, kw_only=True):
    """``[servers.NAME.needs]``: checked before a launch."""

    files: tuple[Text, ...] = ()
    """Paths on the host that must be there."""


class Server(Table, frozen=True, kw_only=True):
    """``[servers.NAME]``: how a server is started."""

    host: Text
    """Name of its ``[hosts.NAME]``."""
    engine: Text
    """``sglang``, ``vllm`` … or one of your own."""
    launcher: Launcher = "process"
    """Who starts and stops it."""
    command: Words
    """Word by word, as a shell would have split it; there is no shell."""
    cwd: Text | None = None
    """The folder it is started in."""
    log: Text | None = None
    """Where its output goes; else a file of ours in ``/tmp``, which is named."""
    user: Text | None = None
    """Started as this user."""
    api_key_env: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_]\w*$")] | None = None
    """Name of the variable, on the host, that holds the key."""
    api_key_command: Words | None = None
    """Instead: a command on this machine whose first line is the key, run each time it is needed."""
    env: Mapping[Text, str] = {}
    """Variables set for it; no secrets."""
    needs: Needs = Needs()
    """Checked before a launch."""


class FilePatch(Table, frozen=True, kw_only=True):
    """One entry of a variant's ``patches``."""

    file: Text
    """Path on the host: JSON, YAML, TOML, .env or shell."""
    set: Mapping[Text, Any]
    """Keys and the values they must have; tables within are dotted keys."""


class Variant(Table, frozen=True, kw_only=True):
    """``[variants.NAME]``: a named change of a launch."""

    server: Text
    """Name of its ``[servers.NAME]``."""
    args: tuple[Text, ...] = ()
    """Behind the command: of a flag given twice the last counts."""
    env: Mapping[Text, str] = {}
    """Over the server's own."""
    patches: tuple[FilePatch, ...] = ()
    """Made before it is launched; ``specdash undo`` takes them back."""


class Benchmark(Table, frozen=True, kw_only=True):
    """``[benchmarks.NAME]``: the built-in load, or a command of your own that prints the rate."""

    concurrency: tuple[Annotated[int, msgspec.Meta(ge=1)], ...] = ()
    """Requests at a time; several are measured one after the other."""
    requests: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many in a run; without: 32, or four a stream where that is more."""
    input: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Tokens of a prompt."""
    output: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Tokens of an answer."""
    repeat: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How often all of it: five give an interval."""
    rate: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Requests a second, instead of a concurrency."""
    api: Literal["chat", "completions"] | None = None
    """Which of the two is asked."""
    command: Words | None = None
    """A benchmark of your own, on the host, word by word."""
    tok_s: Text | None = None
    """A regular expression with one group: the rate in the command's output."""


Operation: TypeAlias = Literal["check", "kill", "clean", "launch", "restart", "patch"]
"""``check``: the preflight. ``patch``: the known fix of what went wrong."""


class RunbookStep(Table, frozen=True, kw_only=True):
    """One step: exactly one of do, wait, check, patch, run, manual, notify and bench."""

    title: Text | None = None
    """What it is called; else what it does."""
    do: Operation | None = None
    """An operation on the server."""
    wait: Text | None = None
    """Until this condition holds: ``specdash help runbooks``."""
    check: Text | None = None
    """This condition must hold now."""
    patch: FilePatch | None = None
    """Values that a file on the host must have."""
    run: Words | None = None
    """A command on the host, word by word; no shell."""
    manual: Text | None = None
    """Something that a person does, and ticks."""
    notify: Text | None = None
    """Ring, and say this."""
    bench: Text | None = None
    """A benchmark of the profile."""
    within: Within | None = None
    """How long a ``wait`` or a ``run`` may take."""
    unless: Text | None = None
    """Beside ``wait``: a condition with which there is nothing to wait for any more."""
    variant: Text | None = None
    """Beside ``do``: of a check, a launch or a restart."""
    force: tuple[Text, ...] = ()
    """Beside ``do``: what may be red."""


class Runbook(Table, frozen=True, kw_only=True):
    """``[runbooks.NAME]``: a procedure."""

    about: Text | None = None
    """What it is for, in a line."""
    each: Literal["variant"] | None = None
    """``variant``: all steps for the server as it is, then for each of its variants."""
    rounds: Annotated[int, msgspec.Meta(ge=1, le=20)] = 1
    """How often all of it; of several variants every other round is the other way round."""
    steps: Annotated[tuple[RunbookStep, ...], msgspec.Meta(min_length=1)]
    """One after the other."""


Told: TypeAlias = Literal["stalled", "crashed", "degraded", "ready", "stopped", "runbook"]


class Notify(Table, frozen=True, kw_only=True):
    """``[notify.NAME]``: whom to tell outside the terminal, by apprise. The address is a secret."""

    url_env: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_]\w*$")] | None = None
    """Name of the variable, on this machine, that holds the address."""
    url_command: Words | None = None
    """A command on this machine that prints it."""
    on: Annotated[tuple[Told, ...], msgspec.Meta(min_length=1)] = (
        "stalled",
        "crashed",
        "degraded",
        "ready",
        "runbook",
    )
    """States that are told; else all but ``stopped``. ``runbook``: what a runbook says."""
    hosts: tuple[Text, ...] = ()
    """Names of ``[hosts.NAME]``; empty: all."""
    quiet: (
        Annotated[str, msgspec.Meta(pattern=r"^([01]?\d|2[0-3]):[0-5]\d\s*-\s*([01]?\d|2[0-3]):[0-5]\d$")]
        | None
    ) = None
    """``22:00-07:00``, local time: nothing is told then …"""
    wake: tuple[Told, ...] = ()
    """… but these."""


class Profile(Table, frozen=True, kw_only=True):
    """A whole profile."""

    schema: Literal[1] = 1
    """Always 1."""
    hosts: Mapping[str, Host] = {}
    servers: Mapping[str, Server] = {}
    variants: Mapping[str, Variant] = {}
    benchmarks: Mapping[str, Benchmark] = {}
    runbooks: Mapping[str, Runbook] = {}
    notify: Mapping[str, Notify] = {}

    def host_of(self, target: str) -> tuple[str, Host] | None:
        """The host that a TARGET means: by its name in the profile, or by its own target."""
        if target in self.hosts:
            return target, self.hosts[target]
        return next(((name, host) for name, host in self.hosts.items() if host.target == target), None)

    def servers_of(self, host: str) -> dict[str, Server]:
        """The servers of a host, by name."""
        return {name: server for name, server in self.servers.items() if server.host == host}


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    key: str
    """``servers.main.launchr``"""
    line: int | None
    says: str

    def text(self, path: Path | str) -> str:
        """``specdash.toml:12: servers.main.launchr: …``"""
        where = f"{path}:{self.line}" if self.line else str(path)
        if not self.key:
            return f"{where}: {self.says}"
        # "api_key: …" would be taken for the secret itself, and its first word for the value.
        apart = ":" if redact(f"{self.key}: -") == f"{self.key}: -" else " -"
        return f"{where}: {self.key}{apart} {self.says}"
