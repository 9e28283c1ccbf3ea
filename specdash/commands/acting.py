"""What every command that changes a host shares: its options, the way to the host, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, TypeVar

import click

from specdash.commands.folding import columns, tell
from specdash.commands.targets import ask_on_terminal, meant, options_from, server_option, target_options
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line
from specdash.wording import named

if TYPE_CHECKING:
    from specdash.monitor.state import HostState, Server
    from specdash.operations.desk import Desk
    from specdash.operations.journal import Journal
    from specdash.operations.plan import Plan
    from specdash.operations.rules import Rules
    from specdash.operations.which import Wanted
    from specdash.profile.document import Host, Profile
    from specdash.session.live import Session

_F = TypeVar("_F", bound=Callable[..., Any])
EXIT_FAILED, EXIT_NO_CONNECTION, EXIT_REFUSED = 1, 3, 4


class Refused(SpecdashError):
    """Not done: watch only, or nobody said yes."""

    exit_code: ClassVar[int] = EXIT_REFUSED


class NoConnection(SpecdashError):
    """The host cannot be reached, or not any more."""

    exit_code: ClassVar[int] = EXIT_NO_CONNECTION


def no_host(told: str, error: NoConnection) -> NoConnection:
    """A server was named for a host: ``told`` is what helps, and advice on networks is none."""
    return NoConnection(told, error.message.partition(" (")[0])


_PROFILE = click.option(
    "--profile", type=click.Path(path_type=Path), help="The profile; else specdash.toml here, else yours."
)
_FORCE = click.option(
    "--force", multiple=True, metavar="CHECK", help="Go on although this is red; may be given again."
)
_ACTING = (
    click.option("--dry-run", is_flag=True, help="Only show the plan: literal signals, commands, bytes."),
    click.option("--yes", is_flag=True, help="Do it without asking; without a terminal nothing else does."),
    _FORCE,
)


def looking_options(command: _F) -> _F:
    """For commands that only look, by the same profile."""
    for option in reversed((server_option(), _PROFILE)):
        command = option(command)
    return target_options(command)


def acting_options(command: _F) -> _F:
    """For commands that change something."""
    for option in reversed((*_ACTING, server_option(), _PROFILE)):
        command = option(command)
    return target_options(command)


@dataclass
class Scene:
    """A host that is connected, and everything a command needs to plan for it."""

    session: Session
    profile: Profile
    host_name: str | None
    """The host's name in the profile."""
    host: Host | None
    journal: Journal
    given: dict[str, Any]
    outside: Session | None = None
    told: set[str] = field(default_factory=set)

    @property
    def state(self) -> HostState:
        """The newest picture."""
        return self.session.state

    @property
    def wanted(self) -> Wanted | None:
        """The server that ``--server`` asks for."""
        from specdash.operations.which import Wanted

        return Wanted.of(self.given.get("server"), self.profile, (self.host_name,))

    def server(self) -> Server:
        """The living server that is meant. Raises ``NoServer``, or ``Ambiguous`` where several are."""
        from specdash.operations.which import choose

        return choose(self.state.servers, self.wanted)

    @property
    def rules(self) -> Rules:
        """What must be typed, and what is forced."""
        from specdash.operations.rules import Rules

        production = bool(self.host and self.host.production)
        return Rules(production=production, forced=tuple(self.given.get("force") or ()))


def say(text: str, *, nl: bool = True) -> None:
    """Narration: on stderr, so that stdout stays a document.

    Whether anybody hears it (``2>&1 | head``, a closed terminal, a full disk) decides over nothing that is
    done meanwhile.
    """
    with contextlib.suppress(OSError):
        if nl:
            tell(text, err=True)
        else:
            click.echo(text, nl=False, err=True)


def obeys(stream: TextIO) -> bool:
    """Behind it is a terminal that understands more than text."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")


def show(lines: Iterable[str], given: dict[str, Any]) -> None:
    """What will be done: on stdout where nothing else was asked for, else it is narration."""
    out = tell if _is_asked(given) else say
    for line in lines:
        out(clean_line(line))


def room(given: dict[str, Any]) -> int | None:
    """Columns of the terminal that ``show`` speaks to; None: it is none."""
    return columns(sys.stdout if _is_asked(given) else sys.stderr)


def _is_asked(given: dict[str, Any]) -> bool:
    """The plan is all that was asked for, and no document."""
    return bool(given["dry_run"] and not given["json"])


def heeded(*numbers: signal.Signals) -> list[signal.Signals]:
    """Those that whoever has started us did not want to be ignored, as ``nohup`` does."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


Prepare = Callable[[Scene], Awaitable["Plan"]]


@contextlib.asynccontextmanager
async def scene(target: str, given: dict[str, Any], *, outside: bool = False) -> AsyncIterator[Scene]:
    """A connected host, looked at as `status` looks; let go of at the end.

    Raises ``NoConnection`` where it cannot be reached.
    """
    from specdash.operations.journal import Journal
    from specdash.profile.keys import key_commands
    from specdash.profile.loading import load
    from specdash.session.live import open_source

    profile = load(given.get("profile"))
    named = profile.host_of(target)
    if named is not None and named[1].watch:
        given["watch"] = True
    keys = key_commands(profile, named[0] if named else None)
    others = () if named else tuple(profile.hosts)
    options = options_from(given, prompter=ask_on_terminal(), keys=keys, others=others)
    session = open_source(named[1].target if named else target, options)
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(_connected(session))
        except NoConnection as error:
            ctx = click.get_current_context(silent=True)
            told = meant(profile, target, ctx.info_name or "" if ctx else "", given)
            raise (error if told is None else no_host(told, error)) from None
        second: Session | None = None
        if outside and named is not None and named[1].cleanup_via:
            second = open_source(named[1].cleanup_via, options_from(_second(given), ask_on_terminal()))
            await stack.enter_async_context(_connected(second))
        yield Scene(
            session=session,
            profile=profile,
            host_name=named[0] if named else None,
            host=named[1] if named else None,
            journal=Journal(),
            given=given,
            outside=second,
        )


def _second(given: dict[str, Any]) -> dict[str, Any]:
    """The second target is another machine: port, key and jump host of the first are not its."""
    return {**given, "port": None, "identity": None, "jump": None, "log": None}


@contextlib.asynccontextmanager
async def _connected(session: Session) -> AsyncIterator[None]:
    running = asyncio.create_task(session.run())
    try:
        await _look(session)
        yield
    finally:
        await session.stop()
        await running


async def _look(session: Session) -> None:
    """Follow the host until enough was seen to plan. Raises ``NoConnection``."""
    from specdash.session.glance import Glance

    changed = asyncio.Event()
    unsubscribe = session.subscribe(changed.set)
    glance, clock = Glance(), asyncio.get_running_loop().time
    try:
        while not (outcome := glance.judge(session.state, clock())).done:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), 1.0)
            changed.clear()
    finally:
        unsubscribe()
    if outcome.refused is not None:
        raise NoConnection(named(session.target, outcome.refused))


def desk_of(here: Scene) -> Desk:
    """The operations of this host."""
    from specdash.operations.desk import Desk

    return Desk(here.session, here.journal, outside=here.outside)
