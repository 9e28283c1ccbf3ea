"""The one command that starts the agent on any host, whatever the login shell and its start-up files do.

``/bin/sh -c '<script>' '<loader>'``: single quotes are the only quoting that bash, dash, fish and csh read
alike, so neither part contains a quote, a backslash, an exclamation mark or a newline. The script looks
for a Python and says so in a *magic line* that carries a nonce; only then is anything written to stdin,
so that a start-up file which reads stdin cannot eat the agent. Nothing is written to the host's disk.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from specdash.remote.errors import LinkError, failure, of_openssh, said
from specdash.remote.transport import Channel

NOISE_LIMIT = 1 << 20
"""Other output that is tolerated before the magic line, in bytes."""
CONNECT_LIMIT = 15
"""Seconds that a connection may take until the other end has said that it is an sshd."""
START_LIMIT = 20.0
"""Seconds until the magic line must have come."""

# The absolute path first: version managers make each `python3` start hundreds of milliseconds slow.
INTERPRETERS: tuple[str, ...] = (
    *("/usr/bin/python3", "python3", "/usr/local/bin/python3", "/opt/conda/bin/python3"),
    *(f"python3.{minor}" for minor in range(15, 5, -1)),
    *("/usr/libexec/platform-python", "python"),
)

# -I: neither PYTHON* variables nor files in the current folder can break or replace anything.
_TEST = '-I -c "import json,sys,zlib;sys.exit(sys.version_info<(3,6))"'

# os.read only: a buffered stdin would swallow the first requests.
_LOADER = (
    "import json,os,sys,zlib;"
    "R=lambda n:os.read(0,n)or sys.exit(3);"
    'h,n=map(int,b"".join(iter(lambda:R(1),bytes([10]))).split());'
    'P=b"";exec("while len(P)<h+n:P+=R(h+n-len(P))");'
    "d=json.loads(zlib.decompress(P[h:]).decode());o=json.loads(P[:h].decode());del P;"
    'g={"__name__":"specdash_loader"};exec(compile(d["loader"],"<sent>/loader.py","exec"),g);'
    'g["start"](d["modules"],o)'
)

# The magic is put together on the host: a shell that echoes its commands does not print it whole.
_SCRIPT = (
    "m=SPEC;m=${{m}}DASH1;n={nonce};s=;"
    'for p in "$@" {interpreters};do '
    'if command -v "$p" >/dev/null 2>&1 && "$p" {test} >/dev/null 2>&1 </dev/null;then {sudo}'
    '{run}echo;echo "$m $n py $p";exec $s "$p" -u -I -c "$0";fi;done;'
    "if command -v nvidia-smi >/dev/null 2>&1;then"
    ' echo;echo "$m $n smi -";w=;e=$(echo;echo .);e=${{e%.}};'
    "while IFS= read -r l;do case $l in .)break;;esac;w=$w$l$e;done;"
    'eval "$w";exit;fi;'
    'echo;echo "$m $n none -"'
)
# A password is read into the shell's memory alone, and shown to sudo through a pipe: it stands in no
# command line. Each try is ours to count; -k keeps it from being remembered on the host.
_TELL = '{{ printf %s "$w";echo;{then}}}|LC_ALL=C sudo -k -S -p "" "$p" {what}'
_SUDO = (
    'if [ "$(id -u)" = 0 ];then :;'
    'elif r=$(LC_ALL=C sudo -n "$p" {test} 2>&1 </dev/null);then s="sudo -n";'
    'else while case $r in *password*):;;*)false;esac&&{{ echo;echo "$m $n sudo -";IFS= read -r w;}}'
    '&&[ "$w" ];do r=$({tell} 2>&1)&&{{ s=k;break;}};done;'
    'if [ "$s" = "" ];then echo;echo "$m $n nosudo" $r;fi;fi;'
)
_SUDO_RUN = 'if [ "$s" = k ];then echo;echo "$m $n py $p";{tell};exit;fi;'


@dataclass(frozen=True)
class Bootstrap:
    """One start of the agent: the command, and the nonce that its magic line must carry."""

    sudo: bool = False
    """Start the agent by ``sudo`` where that is allowed, with a password if somebody can give it."""
    interpreters: Sequence[str] = INTERPRETERS
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        for name in self.interpreters:
            if not re.fullmatch(r"[A-Za-z0-9_./+][A-Za-z0-9_./+-]*", name):
                raise ValueError(f"not the name of a Python: {name!r}")

    @property
    def script(self) -> str:
        """The shell's part."""
        sudo = run = ""
        if self.sudo:
            sudo = _SUDO.format(test=_TEST, tell=_TELL.format(then="", what=_TEST))
            run = _SUDO_RUN.format(tell=_TELL.format(then="exec cat;", what='-u -I -c "$0"'))
        names = " ".join(self.interpreters)
        return _quotable(_SCRIPT.format(nonce=self.nonce, interpreters=names, test=_TEST, sudo=sudo, run=run))

    @property
    def loader(self) -> str:
        """Python's part, handed over as the script's ``$0``."""
        return _quotable(_LOADER)

    @property
    def line(self) -> str:
        """The command for a remote shell of any kind."""
        return f"/bin/sh -c '{self.script}' '{self.loader}'"

    def argv(self, *first: str) -> list[str]:
        """The command without a shell around it; ``first`` are interpreters to try before the others."""
        return ["/bin/sh", "-c", self.script, self.loader, *first]

    @property
    def magic(self) -> bytes:
        """How a line of ours begins."""
        return b"SPECDASH1 %s " % self.nonce.encode()


def _quotable(part: str) -> str:
    if set(part) & set("'\\!\n"):
        raise AssertionError(f"cannot be single-quoted in every shell: {part!r}")
    return part


@dataclass(frozen=True)
class Started:
    """The script's answer: a Python is there and waits for the agent."""

    interpreter: str
    """Empty where there is none: a plain shell waits beside nvidia-smi for ``shell.sh``."""
    noise: bytes = b""
    """What else was printed before: greetings of start-up files."""
    no_sudo: str | None = None
    """Why the agent runs without ``sudo``, where it was asked for: sudo's own words."""


class Passwords(Protocol):
    """Gives sudo's password, try for try."""

    async def sudo(self, attempt: int) -> str | None:
        """Give it, or None to go on without sudo. ``attempt`` 2 and more: the one before was wrong."""


async def wait_for_magic(
    channel: Channel,
    boot: Bootstrap,
    host: str,
    limit: float = START_LIMIT,
    passwords: Passwords | None = None,
) -> Started:
    """Read until the magic line; sudo's password is asked for on the way, and that takes what it takes.

    Raises ``LinkError``: no Python, a fixed command, a shell that ends, endless output, no answer in time.
    """
    answer = _Answer(boot)
    attempt = 0
    while (state := await _within(limit, answer, channel, host)) == "sudo":
        attempt += 1
        word = await passwords.sudo(attempt) if passwords is not None else None
        channel.write((word or "").partition("\n")[0].encode() + b"\n")
    if state == "none":
        raise failure("ssh_no_python", host=host)
    return Started(answer.interpreter if state == "py" else "", bytes(answer.noise), answer.no_sudo)


async def _within(limit: float, answer: _Answer, channel: Channel, host: str) -> str:
    try:
        return await asyncio.wait_for(answer.read(channel, host), limit)
    except asyncio.TimeoutError:
        detail = f"; it printed: {said(answer.noise)}" if said(answer.noise) else ""
        raise failure("ssh_slow_start", host=host, seconds=limit, detail=detail) from None


class _Answer:
    """What the script printed so far, sorted into noise and lines of ours."""

    def __init__(self, boot: Bootstrap) -> None:
        self.magic = boot.magic
        self.noise = bytearray()
        self.no_sudo: str | None = None
        self.state = ""
        self.interpreter = ""
        self._rest = b""

    async def read(self, channel: Channel, host: str) -> str:
        """Give the next state that the script tells: ``py``, ``smi``, ``none``, ``sudo``."""
        self.state = ""
        while not self.state:
            data = await channel.read()
            if not data:
                self.noise += self._rest
                raise await _ended(channel, bytes(self.noise), host)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self.take(line)
            if len(self.noise) + len(self._rest) > NOISE_LIMIT:
                tail = self.noise[-400:] + self._rest[-400:]
                raise failure("ssh_stdout_polluted", host=host, detail=said(tail))
        return self.state

    def take(self, line: bytes) -> None:
        if not line.startswith(self.magic):
            self.noise += line + b"\n"
            return
        state, _, rest = line[len(self.magic) :].decode("utf-8", "replace").partition(" ")
        if state == "nosudo":
            self.no_sudo = said(rest.encode()) or "sudo gave no reason"
        else:
            self.state, self.interpreter = state, rest.strip()


async def _ended(channel: Channel, noise: bytes, host: str) -> LinkError:
    """Find out why the channel ended before our script spoke."""
    end = await channel.end()
    if end.lost:
        known = of_openssh(host, end.lost, end.connect_s)
        if known is not None:
            return known
        return failure("ssh_openssh" if end.final else "ssh_connection_dead", host=host, detail=end.lost)
    text = said(noise + b"\n" + end.stderr)
    if re.search(r"not (currently )?available|nologin|not permitted to log in", text, re.IGNORECASE):
        return failure("ssh_nologin", host=host, detail=text)
    if text:
        return failure("ssh_forced_command", host=host, detail=text)
    return failure("ssh_shell_incompatible", host=host, exit=end.exit, detail="")
