"""What an operation may ask of a host: the picture, and the agent's acting verbs with typed answers.

``Session`` is an ``Acts`` as it is; tests have a host made of dictionaries. Answers come through the door
of ``specdash.intake.door`` already: their text is clean.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from specdash.errors import RequestError
from specdash.monitor.state import HostState
from specdash.operations import replies
from specdash.operations.replies_probe import Probe
from specdash.operations.work import Launch, SignalName, Target

_T = TypeVar("_T")

FILE_LIMIT = 512 << 10
"""Bytes of a file that are read to be edited or compared; a config file is far smaller."""


class Acts(Protocol):
    """One host: its newest picture, and requests with an answer."""

    @property
    def target(self) -> str:
        """The host as the operator named it."""

    @property
    def state(self) -> HostState:
        """The newest picture."""

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """Let the host do one thing. A repeated token gives the first one's answer and does nothing.

        Raises ``RequestError`` with the host's words.
        """


class Clock(Protocol):
    """Time, so that a test can turn it."""

    def wall(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""


class RealClock:
    """This machine's time."""

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)


class Hands:
    """The agent's verbs, typed. Every method raises ``RequestError`` with the host's words.

    Those that change something take a token; the others ask under a fresh one each time.
    """

    def __init__(self, acts: Acts) -> None:
        self.acts = acts

    @property
    def state(self) -> HostState:
        """The newest picture."""
        return self.acts.state

    # ------------------------------------------------------------------ looking

    async def family(
        self, seeds: Iterable[Target], run: str | None = None, *, sure: bool = False
    ) -> replies.Family:
        """Everything that belongs to these processes, dead ones that nobody buried included.

        ``sure``: whoever is like them, and no more, counts as doubtful.
        """
        request = {"r": "family", "pids": [seed.pin for seed in seeds], "run": run, "sure": sure}
        return await self._ask(replies.Family, request)

    async def alive(self, targets: Sequence[Target]) -> tuple[replies.Row, ...]:
        """Those that still live; a dead one that nobody buried does not."""
        if not targets:
            return ()
        request = {"r": "alive", "targets": [target.pin for target in targets]}
        return (await self._ask(replies.Alive, request)).alive

    async def holders(self) -> replies.Holders:
        """Everything that owns GPU memory or has a device open."""
        return await self._ask(replies.Holders, {"r": "holders"})

    async def leftovers(self) -> replies.Leftovers:
        """Files of dead servers in shared memory and /tmp."""
        return await self._ask(replies.Leftovers, {"r": "leftovers"})

    async def probe(
        self,
        *,
        ports: Sequence[int] = (),
        paths: Sequence[str] = (),
        modules: Sequence[str] = (),
        python: str | None = None,
    ) -> Probe:
        """What a launch meets: ports, file systems, limits, versions."""
        request = {
            "r": "probe", "ports": list(ports), "paths": list(paths), "modules": list(modules),
            "python": python,
        }  # fmt: skip
        return await self._ask(Probe, request)

    async def read_file(self, path: str, limit: int = FILE_LIMIT) -> replies.File:
        """A file's bytes, hash and what kind of a file it is; ``exists`` is false where there is none."""
        file = await self._ask(replies.File, {"r": "read_file", "path": path, "limit": limit})
        if file.sha256 and hashlib.sha256(file.bytes).hexdigest() != file.sha256:
            raise RequestError(f"{path}: its bytes came damaged")
        return file

    async def read_end(self, path: str, size: int) -> bytes:
        """The last bytes of a file of this size."""
        begin = max(0, size - FILE_LIMIT)
        request = {"r": "read_file", "path": path, "limit": FILE_LIMIT, "offset": begin}
        return (await self._ask(replies.File, request)).bytes

    async def stat_files(self, paths: Sequence[str], head: int = 0) -> tuple[replies.Stat, ...]:
        """Size and first bytes of many files; a folder's entries, an index's shards."""
        if not paths:
            return ()
        request = {"r": "stat_files", "paths": list(paths), "head": head}
        return (await self._ask(replies.Stats, request)).files

    async def launched(self, token: str) -> replies.Launched:
        """What is known of the launch that was made under this token."""
        return await self._ask(replies.Launched, {"r": "launched", "run": token})

    # ------------------------------------------------------------------ acting

    async def signal(
        self, signal: SignalName, targets: Sequence[Target], token: str
    ) -> tuple[replies.Signalled, ...]:
        """Send a signal to each, if it still is that process; a runner names the boot."""
        request = {"r": "signal", "signal": signal, "targets": [t.pin for t in targets]}
        return (await self._ask(replies.Signals, request, token)).targets

    async def remove(self, paths: Sequence[str], token: str) -> tuple[replies.RemovedFile, ...]:
        """Remove leftovers; the host refuses what is none any more."""
        request = {"r": "remove", "paths": list(paths)}
        return (await self._ask(replies.Removed, request, token)).files

    async def write_file(self, path: str, data: bytes, expect: str, link: str, token: str) -> replies.Written:
        """Replace a file's bytes if its hash is ``expect``; keeps a backup."""
        request = {
            "r": "write_file", "path": path, "data": base64.b64encode(data).decode("ascii"),
            "expect": expect, "backup": True, "link": link,
        }  # fmt: skip
        return await self._ask(replies.Written, request, token)

    async def restore(self, backup: str, expect: str, token: str) -> replies.Written:
        """Put a backup back if the file's hash is ``expect``."""
        request = {"r": "restore", "backup": backup, "expect": expect}
        return await self._ask(replies.Written, request, token)

    async def launch(self, launch: Launch, token: str) -> replies.Launched:
        """Start a server, once for each token."""
        request = {
            "r": "launch", "argv": list(launch.argv), "env": launch.env, "inherit": not launch.whole_env,
            "cwd": launch.cwd, "log": launch.log, "user": launch.user, "how": launch.how,
            "name": launch.unit or launch.name,
        }  # fmt: skip
        return await self._ask(replies.Launched, request, token)

    async def run(self, argv: Sequence[str], token: str, limit: float = 60.0) -> replies.Ran:
        """Run one command, no shell, and wait for its end."""
        return await self._ask(replies.Ran, {"r": "run", "argv": list(argv), "limit": limit}, token)

    async def lock(self, who: str, what: str, *, take: bool = False) -> replies.Lock:
        """Take the host for one operation; ``take``: also from another operation."""
        return await self._ask(replies.Lock, {"r": "lock", "who": who, "what": what, "take": take})

    async def unlock(self) -> None:
        """Give it back."""
        await self.acts.ask({"r": "unlock"})

    async def one_token(self, request: Mapping[str, Any], token: str) -> None:
        """Have one token generated. Raises ``RequestError`` where none came."""
        await self.acts.ask({"r": "token", **request}, token=token)

    async def _ask(self, answer: type[_T], request: Mapping[str, Any], token: str | None = None) -> _T:
        value = await self.acts.ask(request, token=token)
        try:
            return msgspec.convert(value, answer, strict=False)
        except msgspec.ValidationError as error:
            raise RequestError(f"{request['r']}: the host's answer was not understood: {error}") from None


def by_unit(launch: Launch) -> bool:
    """A unit or container that is there already is started by its name; how is its own business."""
    return launch.how in ("systemd", "docker") and launch.unit is not None


def unfinished(error: RequestError) -> bool:
    """The host knows that this was begun under its token, and not whether it was done."""
    return error.message.startswith("unfinished:")
