"""The host as the operator names it: ``[user@]host[:port]``, an ssh_config alias, or ``local``."""

from __future__ import annotations

from dataclasses import dataclass

from specdash.remote.errors import TargetError

_LONGEST = 255
_SHAPES = "[user@]host[:port], [v6-address]:port, an ssh_config alias, or local"


@dataclass(frozen=True)
class Target:
    """One host. What ssh_config adds to it is found out when connecting."""

    text: str
    """As typed; the name the host goes by on the screen."""
    host: str
    user: str | None = None
    port: int | None = None
    local: bool = False
    """This machine, without SSH."""


def parse_target(text: str) -> Target:
    """Read a target.

    Raises ``TargetError`` for what cannot be one: empty, with blanks, with an impossible port, or
    beginning with a dash (which ``ssh`` would take for an option).
    """
    given = text.strip()
    if given == "local":
        return Target(text=given, host="local", local=True)
    rest = given.removeprefix("ssh://").rstrip("/") if given.startswith("ssh://") else given
    user, _, place = rest.rpartition("@")
    host, port = _split_port(text, place)
    _refuse_odd(text, user=user, host=host, has_user="@" in rest)
    return Target(text=given, host=host, user=user or None, port=port)


def _refuse_odd(text: str, *, user: str, host: str, has_user: bool) -> None:
    if not host:
        raise TargetError(f"{text!r} names no host", _SHAPES)
    if has_user and not user:
        raise TargetError(f"{text!r} has an empty user before the @", _SHAPES)
    if len(host) > _LONGEST or len(user) > _LONGEST:
        raise TargetError(f"{text[:40]!r}… is longer than a name can be", _SHAPES)
    for word in (user, host):
        if word.startswith("-"):
            raise TargetError(f"{text!r}: a user or host cannot begin with a dash", _SHAPES)
        if any(c.isspace() or not c.isprintable() or c in "'\"`$\\;&|<>(){}*?" for c in word):
            raise TargetError(f"{text!r} has characters that no user or host name has", _SHAPES)
    if "/" in host or "[" in host or "]" in host:
        raise TargetError(f"{text!r} is not a host", _SHAPES)


def _split_port(text: str, place: str) -> tuple[str, int | None]:
    if place.startswith("["):
        host, bracket, after = place[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise TargetError(f"{text!r}: the brackets of the address do not close", _SHAPES)
        return host, _port(text, after[1:]) if after else None
    if place.count(":") > 1:  # a bare IPv6 address: a port would be ambiguous, so it needs brackets
        return place, None
    host, colon, port = place.partition(":")
    return host, _port(text, port) if colon else None


def _port(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 65536):
        raise TargetError(f"{text!r}: the port must be a number from 1 to 65535", _SHAPES)
    return int(digits)
