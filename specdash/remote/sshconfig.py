"""What ssh_config says about one host, read with asyncssh's parser and with the options it leaves out.

asyncssh ignores StrictHostKeyChecking and HashKnownHosts, checks host keys only against its own file list
and connects jump hosts by itself; here all of that is resolved first, so that each hop is connected, and
each key checked, by the same code.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from asyncssh.config import ConfigParseError, SSHClientConfig, SSHConfig

from specdash import ownfiles
from specdash.remote.bootstrap import CONNECT_LIMIT
from specdash.remote.errors import TargetError, failure
from specdash.remote.options import LinkOptions
from specdash.remote.target import Target, parse_target

Policy = Literal["yes", "ask", "accept-new"]

DEFAULT_IDENTITIES = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")
DEFAULT_TIMEOUT = float(CONNECT_LIMIT)
MOST_JUMPS = 8
_USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")


class _ClientConfig(SSHClientConfig):
    """asyncssh's parser, taught the options that it skips."""

    _handlers = {  # noqa: RUF012  (the base class has it as a plain class attribute, too)
        **SSHClientConfig._handlers,
        "stricthostkeychecking": ("StrictHostKeyChecking", SSHConfig._set_string),
        "hashknownhosts": ("HashKnownHosts", SSHConfig._set_bool),
    }

    def expand(self, value: str) -> str:
        """Resolve ``%d``-like tokens, ``${VARIABLES}`` and ``~``."""
        return os.path.expanduser(self._expand_val(value))  # noqa: PTH111 (a str, not a path)


@dataclass(frozen=True)
class Hop:
    """One SSH connection on the way to the host, resolved."""

    name: str
    """As the operator or the configuration calls it."""
    host: str
    """The name that ssh_config knows it by."""
    hostname: str
    user: str
    port: int
    policy: Policy
    user_files: tuple[Path, ...]
    """known_hosts files of the user; the first one is written to."""
    global_files: tuple[Path, ...]
    hash_names: bool
    alias: str | None
    """HostKeyAlias: the name under which the key is kept."""
    identities: tuple[Path, ...]
    """Key files to offer; the usual ones only where none is named, as with ``ssh``."""
    certificates: tuple[Path, ...]
    """CertificateFile: certificates that do not lie beside their key."""
    identities_only: bool
    agent: str | None
    """The ssh-agent's socket, or None."""
    timeout: float
    """Seconds for the TCP connection and the key exchange."""
    proxy_command: str | None
    config: tuple[Path, ...]
    """The files for asyncssh to read the rest from."""
    others: tuple[str, ...] = ()
    """See ``LinkOptions``."""
    chosen_host_key_algs: bool = False
    chosen_ciphers: bool = False
    chosen_compression: bool = False
    jump: bool = False

    @property
    def address(self) -> str:
        """Where it is, in words."""
        return f"{self.hostname} port {self.port}"


def config_files(options: LinkOptions) -> tuple[Path, ...]:
    """Name the files that apply, as ``ssh`` would read them."""
    if options.ssh_config is not None:
        if wrong := ownfiles.trouble(options.ssh_config):
            raise TargetError(f"--ssh-config: {wrong}")
        return (options.ssh_config,)
    files = (Path("~/.ssh/config").expanduser(), _SYSTEM_CONFIG)
    return tuple(file for file in files if os.access(file, os.R_OK))


def resolve(target: Target, options: LinkOptions) -> list[Hop]:
    """Find out the hops to a target, the host itself last.

    Raises ``LinkError`` (ssh_config_divergence) where the configuration cannot be read, ``TargetError``
    for options that contradict each other.
    """
    if target.port and options.port and target.port != options.port:
        raise TargetError(f"two ports for {target.host}: {target.port} and --port {options.port}")
    wanted = replace(target, port=target.port or options.port)
    files = config_files(options)
    try:
        if wrong := next(filter(None, map(ownfiles.trouble, files)), None):
            raise ValueError(wrong)
        hops = _hops(wanted, options.jump, files, depth=0)
    except UnicodeDecodeError:
        names = " or ".join(map(str, files))
        raise failure("ssh_config_divergence", host=target.text, detail=f"{names} is no text") from None
    except (ConfigParseError, ValueError, OSError, KeyError) as error:
        raise failure("ssh_config_divergence", host=target.text, detail=str(error)) from None
    if options.identity is not None:
        if wrong := ownfiles.trouble(options.identity.expanduser()):
            raise TargetError(f"--identity: {wrong}")
        last = hops[-1]
        hops[-1] = replace(last, identities=(options.identity.expanduser(), *last.identities))
    hops = [replace(hop, identities=hop.identities or _usual_identities()) for hop in hops]
    return [*(replace(hop, jump=True) for hop in hops[:-1]), replace(hops[-1], others=options.others)]


def _usual_identities() -> tuple[Path, ...]:
    return tuple(Path("~/.ssh", name).expanduser() for name in DEFAULT_IDENTITIES)


def _hops(target: Target, jump: str | None, files: tuple[Path, ...], depth: int) -> list[Hop]:
    if depth > MOST_JUMPS:
        raise ValueError(f"ProxyJump of {target.host} never ends")
    config = _load(target, files)
    through = jump if jump is not None else config.expand(cast("str | None", config.get("ProxyJump")) or "")
    hop = _hop(target, config, files)
    if not through:
        return [hop]
    hops: list[Hop] = []
    for number, word in enumerate(through.split(",")):
        step = parse_target(word)
        # The first jump host may have one of its own; the others are reached through the one before.
        hops += _hops(step, None if number == 0 else "", files, depth + 1)
    return [*hops, replace(hop, proxy_command=None)]


def _load(target: Target, files: Iterable[Path]) -> _ClientConfig:
    unset: Any = ()  # asyncssh's word for "not given"
    config = _ClientConfig.load(
        None,
        list(files),
        False,
        False,
        False,
        getpass.getuser(),
        target.user or unset,
        target.host,
        target.port or unset,
    )
    return cast(_ClientConfig, config)


def _hop(target: Target, config: _ClientConfig, files: tuple[Path, ...]) -> Hop:
    user_files = cast("list[str] | None", config.get("UserKnownHostsFile"))
    global_files = cast("list[str] | None", config.get("GlobalKnownHostsFile"))
    identities = cast("list[str]", config.get("IdentityFile", []))
    timeout = cast("int | None", config.get("ConnectTimeout"))
    return Hop(
        name=target.text,
        host=target.host,
        hostname=cast(str, config.get("Hostname", target.host)),
        user=cast(str, config.get("User", getpass.getuser())),
        port=cast(int, config.get("Port", 22)),
        policy=_policy(config),
        user_files=_paths(config, _USER_FILES if user_files is None else user_files),
        global_files=_paths(config, _GLOBAL_FILES if global_files is None else global_files),
        hash_names=bool(config.get("HashKnownHosts", False)),
        alias=cast("str | None", config.get("HostKeyAlias")),
        identities=tuple(Path(name).expanduser() for name in identities),
        certificates=_paths(config, cast("list[str]", config.get("CertificateFile", []))),
        identities_only=bool(config.get("IdentitiesOnly", False)),
        agent=_agent(config),
        timeout=float(timeout) if timeout else DEFAULT_TIMEOUT,
        proxy_command=cast("str | None", config.get("ProxyCommand")),
        config=files,
        chosen_host_key_algs=config.get("HostKeyAlgorithms") is not None,
        chosen_ciphers=config.get("Ciphers") is not None,
        chosen_compression=config.get("Compression") is not None,
    )


def _paths(config: _ClientConfig, names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(config.expand(name)) for name in names)


def _agent(config: _ClientConfig) -> str | None:
    """IdentityAgent, else SSH_AUTH_SOCK; ``none`` switches it off."""
    chosen = cast("str | None", config.get("IdentityAgent", "SSH_AUTH_SOCK"))
    if chosen == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    return os.path.expanduser(chosen) if chosen else None  # noqa: PTH111


def _policy(config: _ClientConfig) -> Policy:
    """StrictHostKeyChecking as we honour it: ``no`` accepts new keys, and still refuses changed ones."""
    word = str(config.get("StrictHostKeyChecking", "ask")).lower()
    words: dict[str, Policy] = {
        **{"yes": "yes", "true": "yes", "ask": "ask"},
        **{"accept-new": "accept-new", "no": "accept-new", "off": "accept-new", "false": "accept-new"},
    }
    if word not in words:
        raise ConfigParseError(f"StrictHostKeyChecking {word}: not a word that ssh knows")
    return words[word]
