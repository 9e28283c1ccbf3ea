"""Where the API key of a server comes from: a variable on its host, or a command on this machine."""

from __future__ import annotations

from specdash.profile.document import Profile, Words

_PREFIX = "SPECDASH_KEY_"


def key_variable(profile: Profile, server: str) -> str | None:
    """The variable that holds the key of this server: that of ``api_key_env``; one of ours for a command.

    It is a name alone, and may be kept and shown. The key of a command is put under it for one request at a
    time, and only if that variable is asked for (see ``specdash.session.keyring``).
    """
    described = profile.servers[server]
    if described.api_key_command is not None:
        return _PREFIX + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in server)
    return described.api_key_env


def key_commands(profile: Profile, host: str | None) -> dict[str, tuple[str, Words]]:
    """Variable → the server's name and its command, for the servers of a host."""
    mine = profile.servers_of(host) if host is not None else {}
    out: dict[str, tuple[str, Words]] = {}
    for name, server in mine.items():
        variable = key_variable(profile, name)
        if server.api_key_command is not None and variable is not None:
            out[variable] = name, server.api_key_command
    return out
