"""Ports for servers that are told their port before they open it."""

from __future__ import annotations

import random
import socket

_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_LOWEST = 10_000


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens, and that the kernel gives to nobody by chance.

    Whoever asks for any port gets one of the kernel's own range. One from there that was looked up and let go
    may be another program's by the time that a server opens it, minutes later.
    """
    given = _given_by_chance()
    outside = [port for port in range(_LOWEST, 1 << 16) if port not in given]
    for port in random.sample(outside, min(64, len(outside))):
        with socket.socket() as link:
            try:
                link.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        found: int = link.getsockname()[1]
        return found


def _given_by_chance() -> range:
    """The kernel's own range: proc_sys_net_ipv4(5), ip_local_port_range."""
    try:
        with open(_RANGE, encoding="ascii") as file:  # noqa: PTH123
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        first, last = 32768, 60999
    return range(first, last + 1)
