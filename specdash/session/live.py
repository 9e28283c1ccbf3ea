"""One host: the link to its agent, the monitor that makes a picture of it, and the logs.

The only object that screens and commands talk to. It holds no rule of its own: the monitor says what the
frames mean and what should be observed next; the session asks the agent for exactly that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from specdash import __version__
from specdash.errors import SpecdashError
from specdash.intake.door import admit
from specdash.intake.listeners import Listeners
from specdash.intake.rules import default_rules
from specdash.intake.taking import take
from specdash.logs.buffer import LogBuffer
from specdash.logs.jsonfile import Unwrapper
from specdash.logs.keeper import LogKeeper
from specdash.monitor.frames import (
    AnyFrame,
    Beat,
    Bench,
    Ending,
    Glimpse,
    Hello,
    Link,
    Log,
    Note,
    Processes,
    Reply,
)
from specdash.monitor.limits import Learned
from specdash.monitor.observe import acknowledge, learn, learn_baselines, observe, snooze, start
from specdash.monitor.state import HostState
from specdash.monitor.tokens import listens, token_request
from specdash.monitor.wants import wants
from specdash.remote.asking import Prompter
from specdash.remote.link import Link as RemoteLink
from specdash.remote.options import LinkOptions
from specdash.remote.target import Target, parse_target
from specdash.session.errands import Errands
from specdash.session.following import Following
from specdash.session.keyring import Commands, Keyring
from specdash.session.lessons import Lessons
from specdash.session.orders import Orders

if TYPE_CHECKING:
    from specdash.operations.offers import Operations

LOOKED_BY = 3
"""Beats after which logs are read even where the processes could not be looked at."""


@dataclass(frozen=True)
class SessionOptions:
    """What the command line says about one host."""

    watch: bool = False
    probe: bool = False
    log: str | None = None
    interval: float = 1.0
    ssh_config: Path | None = None
    port: int | None = None
    identity: Path | None = None
    jump: str | None = None
    via_openssh: bool = False
    sudo: bool = False
    typed: str = ""
    """Those that lead to the host, as they are typed: for commands that are shown to be copied."""
    prompter: Prompter | None = None
    history: Path | None = None
    """The history of starts that limits are learned from; None: nothing is learned or kept."""
    on_frame: Callable[[AnyFrame], str | None] | None = None
    """Sees every frame after the door: recordings."""
    unlockable: bool = False
    """``watch`` is the profile's word, not the command line's: it can be taken back."""
    hands: Callable[[Session], Operations] | None = None
    """Makes what may be done to the host, where a profile has a say in it."""
    others: tuple[str, ...] = ()
    """Names of the profile's hosts, one of which a mistyped target may have meant."""
    keys: Commands = field(default_factory=dict)
    """Which variables hold a key that a command on this machine prints (``specdash.profile.keys``)."""


class Session:
    """A live host (see ``specdash.session.source.Source``)."""

    def __init__(self, target: Target, options: SessionOptions) -> None:
        self._options = options
        self._target = target
        self._memory = start(target.text, default_rules(), options.log, options.typed)
        self._logs = LogKeeper()
        self._unwrapper = Unwrapper()
        self._listeners = Listeners()
        self._link = RemoteLink(target, _link_options(options), self._take, options.prompter)
        self._orders = Orders(self._link.send, self._logs, self._memory.rules, options.interval)
        self._errands = Errands(self._link.send)
        self._keys = Keyring(target.text, options.keys)
        self.benches = Following(self._link.send)
        """Benchmarks on the host: who listens to which."""
        self._operations: Operations | None = None
        self._lessons = (
            None
            if options.history is None
            else Lessons(options.history, self._learned, self._complain, self._learned_cards)
        )

    @property
    def target(self) -> str:
        """The host as the operator named it."""
        return self._target.text

    @property
    def watch_only(self) -> bool:
        """The agent was started without acting verbs."""
        return self._options.watch

    @property
    def operations(self) -> Operations | None:
        """What may be done to the host, once it has said hello to an agent that can act."""
        host = self.state.host
        if self._options.watch or host is None or host.watch_only:
            return None
        if self._operations is None:
            self._operations = (self._options.hands or _hands)(self)
            self.subscribe(self._operations.sightings.attend)
            self._operations.sightings.attend()
        return self._operations

    def ends(self, server_key: str) -> None:
        """The operator ends this server now: its end is no crash."""
        self._take(Ending(at=self.state.now, server=server_key), b"")

    @property
    def locked(self) -> str:
        """Why nothing can be done to the host in this view; empty: ``unlock`` helps, or is not needed."""
        if self._options.watch and not self._options.unlockable:
            return "--watch only looks: leave (q) and connect without it to act"
        return "a host without Python can only be looked at" if self.state.by_shell else ""

    def unlock(self) -> None:
        """Connect again with a full agent. Raises ``SpecdashError`` where that must not be."""
        if self.locked:
            raise SpecdashError(self.locked)
        if self._options.watch:
            self._options = replace(self._options, watch=False)
            self._link.renew(_link_options(self._options).agent)

    @property
    def state(self) -> HostState:
        """The newest picture."""
        return self._memory.picture

    @property
    def recording(self) -> Path | None:
        """The file in which what this host says is kept."""
        kept = getattr(self._options.on_frame, "path", None)
        return kept if isinstance(kept, Path) else None

    def log(self, server_key: str) -> LogBuffer | None:
        """The received bytes of that server's log."""
        return self._logs.of(self._memory, server_key)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` soon after each change; changes that come together share one call."""
        return self._listeners.add(changed)

    async def run(self) -> None:
        """Connect, follow and reconnect until stopped. Raises only what is a fault of ours."""
        try:
            await self._link.run()
        except Exception as error:
            self._end(error)
            raise

    async def stop(self) -> None:
        """Let go of the host; the server is not touched."""
        self._link.stop()
        if self._operations is not None:
            await self._operations.stop()
        if self._lessons is not None:
            await self._lessons.close()

    def refresh(self) -> None:
        """Reconnect at once where the link is lost, else sample at once."""
        if self.state.link.state in ("lost", "refused", "connecting"):
            self._link.retry_now()
        else:
            self._link.send({"r": "refresh"})

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """Let the agent do one thing and wait for its answer; a lost link only delays it.

        Raises ``RequestError`` with the host's words.
        """
        return await self._errands.ask(await self._keys.with_key(request), token=token)

    @property
    def probe(self) -> bool:
        """The command line said ``--probe``: a token may be asked for although nothing may be changed."""
        return self._options.probe

    async def token(self, server_key: str) -> float:
        """Ask the server for one token; returns after how many seconds it came.

        Raises ``SpecdashError`` where none came, or nobody may or can be asked.
        """
        server = next((server for server in self.state.servers if server.key == server_key), None)
        if self._options.watch and not self._options.probe:
            raise SpecdashError("only watching: no token is asked for", "connect with --probe")
        if server is None or not listens(server):
            raise SpecdashError("nobody listens on the server's port")
        key_env = self.operations.key_env(server) if self.operations is not None else None
        began = time.monotonic()
        await self.ask(token_request(server, key_env))
        return time.monotonic() - began

    def command_line(self, server_key: str) -> tuple[str, ...]:
        """Of a server's main process, as it was last seen; empty where that is not known."""
        servers = self._memory.servers
        return next((server.family.main.argv for server in servers if server.key == server_key), ())

    def acknowledge(self, alert_key: str) -> None:
        """The operator has seen this alert."""
        self._memory = acknowledge(self._memory, alert_key)
        self._listeners.tell()

    def snooze(self, alert_key: str) -> None:
        """The operator has seen this alert and wants to be told again in ten minutes, if it still holds."""
        self._memory = snooze(self._memory, alert_key)
        self._listeners.tell()

    def _take(self, frame: AnyFrame, _line: bytes) -> None:
        """One frame from the link, or one that the link itself made."""
        came = admit(frame)
        frame = self._unwrapper.admit(came)
        if self._options.on_frame is not None:
            trouble = self._options.on_frame(frame)
            if trouble:
                self._complain(trouble)
        before, self._memory = self._memory, take(self._memory, frame)
        if isinstance(frame, Hello):
            self._orders.again()
            self._errands.again()
            self.benches.again()
        elif isinstance(frame, Processes) or (isinstance(frame, Beat) and frame.n >= LOOKED_BY):
            self._orders.resume()
        elif isinstance(frame, Reply):
            self._errands.take(frame)
            self.benches.answer(frame)
        elif isinstance(frame, Bench):
            self.benches.take(frame)
        elif isinstance(frame, Log) and isinstance(came, Log) and self._orders.follows(frame.path):
            self._logs.keep(frame, before, self._memory)
            self._orders.credit(came)  # the file has more bytes than docker's records have text
        elif isinstance(frame, Glimpse) and self._orders.follows(frame.path):
            self._logs.glimpse(frame)
        if self._memory.picture is before.picture:
            return  # news of one of many servers: what follows from it comes with the next tick
        if not isinstance(frame, Link) or frame.state == "live":
            self._orders.align(wants(self._memory))
        if self._lessons is not None:
            self._lessons.attend(self._memory)
        self._listeners.tell()

    def _end(self, error: Exception) -> None:
        """Nothing more is heard, and no age grows any more: what is shown must not look as if it lived."""
        picture = self._memory.picture
        reason = f"specdash's own error ({type(error).__name__}): this host is no longer watched"
        link = msgspec.structs.replace(picture.link, state="lost", reason=reason, heard_at=None)
        picture = msgspec.structs.replace(picture, link=link, over="specdash failed here")
        self._memory = msgspec.structs.replace(self._memory, picture=picture)
        self._listeners.tell()

    def _learned(self, server_key: str, learned: Learned | None) -> None:
        """The history has answered."""
        self._memory = learn(self._memory, server_key, learned)
        self._listeners.tell()

    def _learned_cards(self, found: Mapping[str, int]) -> None:
        """The history knows what these cards show when nobody uses them."""
        self._memory = learn_baselines(self._memory, found)
        self._listeners.tell()

    def _complain(self, reason: str) -> None:
        """Something on this machine is wrong; the session goes on."""
        self._memory = observe(self._memory, Note(at=self.state.now, level="warning", text=reason))
        self._listeners.tell()


def _hands(session: Session) -> Operations:
    # Only where somebody may act: plans and editors weigh a tenth of a second.
    from specdash.operations.journal import Journal
    from specdash.operations.offers import Operations

    return Operations(session, Journal(), ends=session.ends)


def _link_options(options: SessionOptions) -> LinkOptions:
    return LinkOptions(
        ssh_config=options.ssh_config,
        port=options.port,
        identity=options.identity,
        jump=options.jump,
        via_openssh=options.via_openssh,
        sudo=options.sudo,
        others=options.others,
        agent={"watch": options.watch, "probe": options.probe, "version": __version__},
    )


def open_source(target: str, options: SessionOptions) -> Session:
    """The host that ``target`` names, not yet connected.

    Raises ``SpecdashError`` where the target is no target.
    """
    return Session(parse_target(target), options)
