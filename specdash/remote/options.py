"""How to connect: what the command line and the profile say about a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdash.remote.bootstrap import INTERPRETERS


@dataclass(frozen=True)
class LinkOptions:
    """Everything is optional; the defaults are those of ``ssh`` itself."""

    ssh_config: Path | None = None
    """Read this file instead of ``~/.ssh/config`` and ``/etc/ssh/ssh_config`` (as ``ssh -F``)."""
    port: int | None = None
    identity: Path | None = None
    jump: str | None = None
    """``[user@]host[:port]``, several with commas: as ``ssh -J``."""
    via_openssh: bool = False
    """Let OpenSSH's own client carry the link: ControlMaster, FIDO, GSSAPI."""
    sudo: bool = False
    """Start the agent by ``sudo``, with its password if need be; where that is refused, without: say why."""
    others: tuple[str, ...] = ()
    """Names beside those of the ssh configuration that a mistyped one may have meant: the profile's hosts."""
    agent: Mapping[str, Any] = field(default_factory=dict)
    """Handed to the agent's ``main`` as its options: ``{"watch": true}``."""
    block: bytes | None = None
    """What to send instead of the installed agent: a simulated host has another NVML."""
    interpreters: Sequence[str] = INTERPRETERS
    """Where Python is searched for on the host, in this order."""
