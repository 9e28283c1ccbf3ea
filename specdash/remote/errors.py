"""What can go wrong between this machine and a host, each with its one sentence and its remedy.

The keys are those of the diagnoses (``ssh_*``); the sentences stand in one table, so that the screen,
the commands and the tests speak the same words. ``{host}`` is the host as the operator named it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from specdash.errors import SpecdashError
from specdash.sanitise import clean_line, sanitise


class TargetError(SpecdashError):
    """A target or an option that names none, several or an impossible host."""

    exit_code = 2


class LinkError(SpecdashError):
    """The host could not be reached or its agent could not be started."""

    exit_code = 3

    def __init__(self, key: str, message: str, hint: str | None, *, retry: bool) -> None:
        super().__init__(message, hint)
        self.key = key
        """The diagnosis key, ``ssh_*``."""
        self.retry = retry
        """Trying again by itself makes sense. False: only the operator can mend it."""


@dataclass(frozen=True)
class Failure:
    """One row of the table: a sentence, a remedy, and whether time may heal it."""

    sentence: str
    hint: str | None = None
    retry: bool = False
    usual: str = ""
    """What mostly helps, where the remedy itself depends on what was seen."""


FAILURES: dict[str, Failure] = {
    # Finding the host
    "ssh_no_address": Failure(
        "{host}: the name does not resolve ({detail})",
        "{advice}",
        retry=True,
        usual="check the spelling, the network and DNS",
    ),
    "ssh_port_refused": Failure(
        "{host}: nothing listens on {address} port {port}",
        "is sshd running there, and is the port right?",
        retry=True,
    ),
    "ssh_unreachable": Failure(
        "{host}: no way to {address} port {port} ({detail})", "check the network or the VPN", retry=True
    ),
    "ssh_timeout": Failure(
        "{host}: no answer from {address} port {port} within {seconds:g} s",
        "a firewall may drop the packets, or the host is down",
        retry=True,
    ),
    "ssh_silent": Failure(
        "{host}: {what}, but nothing comes from it for {seconds:g} s",
        "that may be another port than sshd's (--port names it), or the host hangs",
        retry=True,
    ),
    "ssh_slow_login": Failure(
        "{host}: its sshd answers, but {what} took longer than {seconds:g} s",
        "the host may be overloaded",
        retry=True,
    ),
    "ssh_not_ssh": Failure(
        "{host}: what answers on port {port} does not speak SSH ({detail})",
        "is that the port of sshd? --port names another",
    ),
    "ssh_config_divergence": Failure(
        "{host}: the ssh configuration cannot be used: {detail}",
        "mend it, or name another file with --ssh-config, or use --via-openssh",
    ),
    "ssh_max_startups": Failure(
        "{host}: {what} closed the connection before the login",
        "{advice}",
        retry=True,
        usual="it limits new connections (MaxStartups, PerSourcePenalties) or a firewall cuts them",
    ),
    "ssh_no_common_algorithm": Failure(
        "{host}: no common algorithm with its sshd ({detail})", "an old sshd may need --via-openssh"
    ),
    "ssh_proxy_command": Failure(
        "{host}: the ProxyCommand ended: {detail}", "run it by itself: it says why", retry=True
    ),
    "ssh_jump_forward": Failure(
        "{host}: the jump host does not lead to {address} port {port} ({detail})",
        "is it reachable from there, and does the jump host allow TCP forwarding?",
        retry=True,
    ),
    # Host keys
    "ssh_unknown_host": Failure(
        "{host}: its {type} host key {fingerprint} is not known, and {why}",
        "connect once with specdash in a terminal, or with ssh, to accept it",
    ),
    "ssh_host_key_changed": Failure(
        "{host}: THE HOST KEY HAS CHANGED. Known: {known} ({file} line {line}); "
        "offered: {type} {fingerprint}",
        "someone may be listening, or the host was reinstalled; only if you know why: "
        "ssh-keygen -R '{name}' -f {file}",
    ),
    "ssh_host_key_revoked": Failure(
        "{host}: its host key {type} {fingerprint} is revoked ({file} line {line})",
        "do not connect; ask whoever revoked it",
    ),
    "ssh_host_certificate": Failure(
        "{host}: its host certificate is not accepted: {detail}",
        "the @cert-authority line in known_hosts and the certificate must agree",
    ),
    "ssh_known_hosts_parse": Failure("{host}: {file} cannot be read: {detail}", "mend its rights"),
    # Logging in
    "ssh_auth": Failure(
        "{host}: {user} may not log in; {tried}",
        "{advice}",
        usual="is the user right, and your key in its authorized_keys? ssh-add opens one that is locked",
    ),
    "ssh_auth_agent": Failure(
        "{host}: sshd gave up after too many keys were offered",
        "name the key with --identity, or set IdentitiesOnly yes for this host",
    ),
    "ssh_2fa": Failure("{host}: wants {what} again, and a reconnect never asks by itself", "press r"),
    "ssh_login_timeout": Failure("{host}: the login was not finished in time", "press r to try again"),
    # Starting the agent
    "ssh_max_sessions": Failure(
        "{host}: sshd allows no session on this connection ({detail})", "MaxSessions may be 0 (tunnels only)"
    ),
    "ssh_nologin": Failure(
        "{host}: this account may not log in: {detail}", "use a user that has a login shell"
    ),
    "ssh_forced_command": Failure(
        "{host}: sshd runs a fixed command instead of ours: {detail}",
        "use a key or a user without ForceCommand or command=",
    ),
    "ssh_shell_incompatible": Failure(
        "{host}: the login shell ended ({exit}) without running our command{detail}",
        "a start-up file may end or replace the shell when it is not interactive",
    ),
    "ssh_stdout_polluted": Failure(
        "{host}: more than 1 MiB of other output came before our command: {detail}",
        "mend the start-up file of the shell that prints it",
    ),
    "ssh_slow_start": Failure(
        "{host}: our command did not start within {seconds:g} s{detail}",
        "the host may be overloaded, or a start-up file of the shell waits",
        retry=True,
    ),
    "ssh_no_python": Failure(
        "{host}: neither Python 3.6 or newer nor nvidia-smi was found there",
        "install python3 on the host, or the driver's programs",
    ),
    "ssh_agent_failed": Failure(
        "{host}: the agent ended at once ({exit}){detail}",
        "does python3 start there? try it by ssh",
        retry=True,
    ),
    # Losing it
    "ssh_connection_dead": Failure("{host}: {detail}", retry=True),
    "ssh_no_openssh": Failure("{host}: there is no ssh program here", "leave out --via-openssh"),
    "ssh_openssh": Failure(
        "{host}: ssh says: {detail}",
        "a reconnect never asks: press r to be asked, or log in once with ssh itself",
    ),
    "local_start": Failure(
        "local: the agent could not be started: {detail}", "is the program there that it names?"
    ),
}


def failure(key: str, **facts: object) -> LinkError:
    """Build the error of a row. No fact can move a cursor; what a host said comes through ``said``."""
    row = FAILURES[key]
    words = {name: sanitise(value) if isinstance(value, str) else value for name, value in facts.items()}
    hint = row.hint.format(**words) if row.hint else None
    return LinkError(key, row.sentence.format(**words), hint or None, retry=row.retry)


_CLOSED = "ssh_max_startups"
_OPENSSH = tuple(
    (re.compile(pattern), key)
    for pattern, key in (
        (r"connect to host (?P<address>\S+) port (?P<port>\d+): Connection refused", "ssh_port_refused"),
        (r"connect to host (?P<address>\S+) port (?P<port>\d+): \w+ timed out", "ssh_timeout"),
        (r"connect to host (?P<address>\S+) port (?P<port>\d+): (?P<detail>[^/]*[^/ ])", "ssh_unreachable"),
        (r"Could not resolve hostname [^:]+: (?P<detail>[^/]*[^/ ])", "ssh_no_address"),
        (r"banner exchange.* (?P<address>\S+) port (?P<port>\d+) timed out", "ssh_silent"),
        (r"banner .*port (?P<port>\d+): (?P<detail>invalid format)", "ssh_not_ssh"),
        (r"exchange_identification: .* by (?P<address>\S+) port (?P<port>\d+)", _CLOSED),
    )
)
"""What OpenSSH's client prints (sshconnect.c, kex.c) where a row of ours says the same and what helps."""


def of_openssh(host: str, words: str, seconds: float) -> LinkError | None:
    """The row for ssh's own last words, and None where they say more. ``seconds``: its time to connect.

    Behind a jump host it does not know who closed the connection: that stays in its words.
    """
    if "UNKNOWN" in words:
        return None
    for pattern, key in _OPENSSH:
        if match := pattern.search(words):
            facts = match.groupdict()
            what = f"whatever listens on port {facts.get('port')}"
            if key == _CLOSED:
                facts["advice"] = f"that may be no sshd; else {FAILURES[key].usual}"
            elif key == "ssh_silent":
                what = f"port {facts['port']} takes the connection"
            else:
                facts["advice"] = FAILURES[key].usual
            return failure(key, host=host, what=what, seconds=seconds, **facts)
    return None


def said(raw: bytes | bytearray, limit: int = 200) -> str:
    """Make the end of what a host printed fit for a sentence: one clean line, ``limit`` characters long."""
    lines = (clean_line(line).strip() for line in bytes(raw[-16 * limit :]).splitlines())
    text = " / ".join(line for line in lines if line)
    return text if len(text) <= limit else "…" + text[-limit:]
