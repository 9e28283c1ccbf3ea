"""What a simulated host is asked to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the operator asked for."""

    scenario: str = "healthy"
    speed: float = 1.0
    port: int = 0
    """Of the sshd; 0 takes a free one."""
    until_stdin_closes: bool = False
