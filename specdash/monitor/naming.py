"""What a host is called: as the operator named it, everywhere, with its own name where that is another."""

from __future__ import annotations

from specdash.monitor.state import HostState


def called(target: str) -> str:
    """``gpubox`` of ``root@gpubox``: without the user."""
    return target.removeprefix("ssh://").rpartition("@")[2]


def in_full(target: str, own: str | None) -> str:
    """``local (vm)``: with the host's ``own`` name in brackets; ``gpubox`` where that is the same."""
    name = called(target)
    return name if not own or _bare(own) == _bare(name) else f"{name} ({own})"


def host_in_full(state: HostState) -> str:
    """The same of a host as it is known now."""
    return in_full(state.target, state.host.name if state.host is not None else None)


def _bare(name: str) -> str:
    """Without port and domain: what a person would say."""
    return name.partition(":")[0].partition(".")[0].lower()
