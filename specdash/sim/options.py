"""What a simulated host is asked to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the operator asked for."""

    scenario: str = "healthy"
    speed: float = 1.0
    """How fast the host's clock turns while a server starts, hangs or is stuck."""
    serving_speed: float = 1.0
    """The same once a server serves: tokens, and what is measured of them, come in real time."""
    port: int = 0
    """Of the sshd; 0 takes a free one."""
    until_stdin_closes: bool = False
