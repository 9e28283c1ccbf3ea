"""What asyncssh and the network raise, said in our own sentences."""

from __future__ import annotations

import asyncio
import socket

import asyncssh
from asyncssh.config import ConfigParseError

from specdash.remote.aliases import nearest
from specdash.remote.errors import FAILURES, LinkError, failure
from specdash.remote.login import Login
from specdash.remote.sshconfig import Hop


def explain(
    error: BaseException, hop: Hop, login: Login | None = None, *, typed_before: bool = False
) -> LinkError:
    """Turn a failure to connect into a row of the table."""
    host = f"jump host {hop.name}" if hop.jump else hop.name
    place = {"host": host, "address": hop.hostname, "port": hop.port}
    detail = str(error) or type(error).__name__
    if isinstance(error, asyncssh.PermissionDenied) and login is not None:
        return _denied(host, hop, login, typed_before)
    if isinstance(error, asyncssh.ChannelOpenError):
        if login is not None:  # not yet logged in: the channel is the one through the jump host
            return failure("ssh_jump_forward", **place, detail=error.reason)
        return failure("ssh_max_sessions", host=host, detail=error.reason)
    if isinstance(error, asyncssh.DisconnectError):
        return _disconnected(error, host, hop, login)
    if isinstance(error, socket.gaierror):
        meant = nearest(hop.host, hop.config, hop.others)
        advice = f"did you mean {meant}?" if meant else FAILURES["ssh_no_address"].usual
        return failure("ssh_no_address", host=host, detail=error.strerror or detail, advice=advice)
    if isinstance(error, ConnectionRefusedError):
        return failure("ssh_port_refused", **place)
    if isinstance(error, asyncio.TimeoutError):
        return _too_late(host, hop, login)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return _closed(host, hop, login)
    if isinstance(error, OSError):
        return failure("ssh_unreachable", **place, detail=error.strerror or detail)
    if isinstance(error, ConfigParseError | ValueError):
        return failure("ssh_config_divergence", host=host, detail=detail)
    return failure("ssh_connection_dead", host=host, detail=detail)


def _too_late(host: str, hop: Hop, login: Login | None) -> LinkError:
    """Say how far it came in the time that it had."""
    seconds = hop.timeout
    if login is None:
        return failure("ssh_slow_login", host=host, what="opening a session", seconds=seconds)
    if not login.greeting.connected:
        return failure("ssh_timeout", host=host, address=hop.hostname, port=hop.port, seconds=seconds)
    if login.greeting.other:
        return failure("ssh_not_ssh", host=host, port=hop.port, detail=login.greeting.other)
    if not login.greeting.is_sshd:
        taken = "the ProxyCommand runs" if hop.proxy_command else f"port {hop.port} takes the connection"
        return failure("ssh_silent", host=host, what=taken, seconds=seconds)
    what = "the login" if login.verdict else "agreeing on encryption"
    return failure("ssh_slow_login", host=host, what=what, seconds=seconds)


def _closed(host: str, hop: Hop, login: Login | None) -> LinkError:
    """Say who hung up before it was known by its key: only an sshd that spoke is called one."""
    greeting = login.greeting if login else None
    if greeting and greeting.other:
        return failure("ssh_not_ssh", host=host, port=hop.port, detail=greeting.other)
    if hop.proxy_command:
        return failure("ssh_proxy_command", host=host, detail=hop.proxy_command)
    advice = FAILURES["ssh_max_startups"].usual
    if greeting is None or greeting.is_sshd:
        return failure("ssh_max_startups", host=host, what="sshd", advice=advice)
    what = f"whatever listens on port {hop.port}"
    return failure("ssh_max_startups", host=host, what=what, advice=f"that may be no sshd; else {advice}")


def _disconnected(error: asyncssh.DisconnectError, host: str, hop: Hop, login: Login | None) -> LinkError:
    text = error.reason
    if login is not None and login.greeting.other:
        return failure("ssh_not_ssh", host=host, port=hop.port, detail=login.greeting.other)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return failure("ssh_no_common_algorithm", host=host, detail=text)
    if "Too many authentication failures" in text:
        return failure("ssh_auth_agent", host=host)
    if "Login timeout" in text:
        return failure("ssh_login_timeout", host=host)
    if isinstance(error, asyncssh.ProtocolNotSupported) or "banner" in text or "version" in text.lower():
        return failure("ssh_not_ssh", host=host, port=hop.port, detail=text)
    if isinstance(error, asyncssh.ConnectionLost):
        if login is not None and login.verdict is not None:
            return failure(
                "ssh_connection_dead", host=host, detail=f"the connection broke during the login: {text}"
            )
        return _closed(host, hop, login)
    return failure("ssh_connection_dead", host=host, detail=text)


def _denied(host: str, hop: Hop, login: Login, typed_before: bool) -> LinkError:
    """Say who was refused, with what, and what would help."""
    if typed_before and login.wants and not login.answered:
        return failure("ssh_2fa", host=host, what=login.wants)
    tried = f"offered: {', '.join(login.tried)}" if login.tried else "there was no key to offer"
    if login.answered:
        tried += ", and what was typed"
    if login.unusable:
        tried += f"; no private key in {', '.join(login.unusable)}"
    if login.locked:
        tried += f"; not opened: {', '.join(login.locked)} (needs its passphrase)"
    if login.said:
        tried += f"; it says: {' '.join(login.said)}"
    if login.locked:
        advice = f"add it to the ssh-agent (ssh-add {login.locked[0]}), or connect where specdash can ask"
    else:
        advice = f"is {hop.user} right, and the key in its authorized_keys?"
        if login.wants and not login.answered:
            advice += f" It also takes {login.wants}, where specdash can ask for it"
    return failure("ssh_auth", host=host, user=hop.user, tried=tried, advice=advice)
