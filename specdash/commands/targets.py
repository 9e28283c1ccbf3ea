"""The options that every command with a TARGET takes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from specdash import ownfiles
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.profile.document import Profile
    from specdash.remote.asking import HostKeyQuestion, Prompter, SecretQuestion
    from specdash.session.live import SessionOptions

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-F", "--ssh-config", type=click.Path(path_type=Path), help="Read this file instead of ~/.ssh/config."
    ),
    click.option("-p", "--port", type=click.IntRange(1, 65535), metavar="N", help="SSH port."),
    click.option("-i", "--identity", type=click.Path(path_type=Path), help="Private key file, as ssh -i."),
    click.option("-J", "--jump", metavar="HOST", help="Jump host."),
    click.option("--via-openssh", is_flag=True, help="Let OpenSSH's own client carry the link."),
    click.option("--sudo", is_flag=True, help="Run the agent by sudo, to see other users' processes."),
    click.option("--log", "log", metavar="PATH", help="Follow this log on the host."),
    click.option("--watch", is_flag=True, help="Only look: the agent is started without acting verbs."),
    click.option("--json", is_flag=True, help="One JSON document on stdout."),
    click.option("--plain", is_flag=True, help="Plain lines, no screen."),
)


_SERVER = "The server of that name (in the profile or on the screen), port or pid"


def server_option(what: str = "") -> Callable[[_F], _F]:
    """``--server``: one wording for all commands. ``what``: what this one does with it, if more."""
    return click.option("--server", metavar="NAME|PORT|PID", help=f"{_SERVER}{what and f': {what}'}.")


def target_options(command: _F) -> _F:
    """Add them to a command; it gets them by name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check(given: dict[str, Any]) -> None:
    """Refuse at once what no connection could be made with. Raises ``UsageError`` or ``TargetError``."""
    from specdash.remote.target import parse_target

    for name in ("ssh_config", "identity"):
        path: Path | None = given[name]
        if path is not None and (wrong := ownfiles.trouble(path.expanduser())):
            raise click.UsageError(f"--{name.replace('_', '-')}: {wrong}")
    for word in (given["jump"] or "").split(","):
        if word.strip():
            parse_target(word)


def options_from(given: dict[str, Any], prompter: Prompter | None, **more: Any) -> SessionOptions:
    """The session's options from the command line's."""
    from specdash.agent.paths import shown
    from specdash.session.lessons import place
    from specdash.session.live import SessionOptions

    check(given)
    return SessionOptions(
        watch=given["watch"],
        log=None if given["log"] is None else shown(given["log"]),
        ssh_config=given["ssh_config"],
        port=given["port"],
        identity=given["identity"],
        jump=given["jump"],
        via_openssh=given["via_openssh"],
        sudo=given["sudo"],
        typed=typed(given),
        prompter=prompter,
        history=place(),
        **more,
    )


_LEADING = ("ssh_config", "port", "identity", "jump", "via_openssh", "sudo", "profile")
"""The options without which the same command would not see the same host."""


def typed(given: Mapping[str, Any]) -> str:
    """Those that lead to the host, as they were typed: for commands that are shown to be copied."""
    options = {f"--{name.replace('_', '-')}": given.get(name) for name in _LEADING}
    words = (
        name if value is True else f"{name} {shlex.quote(str(value))}"
        for name, value in options.items()
        if value
    )
    return clean_line(" ".join(words))


def called(target: str, given: Mapping[str, Any]) -> str:
    """The host in a command that is shown to be copied."""
    return f"{target} {typed(given)}".rstrip()


def meant(profile: Profile, target: str, command: str, given: Mapping[str, Any]) -> str | None:
    """What to say of a TARGET that cannot be reached and is no host of the profile, but a server of it."""
    if target not in profile.servers or profile.host_of(target) is not None:
        return None
    host = called(profile.servers[target].host, given)
    return f"{target} is a server of the profile: specdash {command} {host} --server {target}"


class TerminalPrompter:
    """Asks on the terminal: for commands without a screen."""

    async def host_key(self, question: HostKeyQuestion) -> bool:
        """Only the whole word ``yes`` trusts."""
        from specdash.commands.asking import ask

        click.echo(question.text, err=True)
        answer = await ask("yes/no [no]")
        return answer is not None and answer.strip().lower() == "yes"

    async def secret(self, question: SecretQuestion) -> str | None:
        """An empty answer gives up."""
        from specdash.commands.asking import ask

        return await ask(question.prompt.rstrip(" :"), hidden=not question.echo) or None


def ask_on_terminal() -> Prompter | None:
    """A prompter, where there is somebody to ask."""
    return TerminalPrompter() if sys.stdin.isatty() and sys.stderr.isatty() else None
