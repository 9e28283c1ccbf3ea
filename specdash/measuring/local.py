"""The load generator as a process of this machine: for a URL."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from specdash.bench.events import AnyEvent, End, decode
from specdash.bench.plan import Workload
from specdash.errors import SpecdashError

LINE_LIMIT: Final = 16 << 20
"""Bytes of one line at most; the longest is a request with many gaps, some tens of kilobytes."""
GRACE_S: Final = 10.0
"""How long it may take to end in order; then it is killed, and the server drops what was asked."""
COMMAND: Final = (sys.executable, "-m", "specdash.agent.loadgen")


class LocalGenerator:
    """Starts one process for each run."""

    def __init__(self, command: Sequence[str] = COMMAND, *, grace_s: float = GRACE_S) -> None:
        self._command, self._grace_s = tuple(command), grace_s
        self._process: asyncio.subprocess.Process | None = None
        self._killer: asyncio.TimerHandle | None = None

    async def run(self, load: Workload) -> AsyncIterator[AnyEvent]:
        """What it prints, in order. Raises ``SpecdashError`` where it cannot be started or ends unasked."""
        process = await self._start(load)
        ended = False
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                event = decode(line)
                ended = ended or isinstance(event, End)
                yield event
            await process.wait()
            if not ended:
                raise SpecdashError(await self._last_words(process))
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise SpecdashError(f"the load generator cannot be understood: {error}") from error
        finally:
            await self._bury(process)

    def script(
        self, command: Sequence[str], tok_s: str | None = None, limit: float | None = None
    ) -> AsyncIterator[AnyEvent]:
        """Raises ``SpecdashError``: a command of the operator's own runs on a host."""
        raise SpecdashError("a command of your own runs on a host: name the host, not a URL")

    def stop(self) -> None:
        """Ask it to end in order; it is killed where it does not."""
        process = self._process
        if process is not None and process.returncode is None and self._killer is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            self._killer = asyncio.get_running_loop().call_later(self._grace_s, self._kill, process)

    async def _start(self, load: Workload) -> asyncio.subprocess.Process:
        try:
            # A session of its own: Ctrl-C at the terminal reaches us alone, and we end it in order.
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=LINE_LIMIT,
            )
        except OSError as error:
            raise SpecdashError(f"the load generator cannot be started: {error}") from error
        self._process = process
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(load) + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        return process

    async def _last_words(self, process: asyncio.subprocess.Process) -> str:
        assert process.stderr is not None
        words = (await process.stderr.read(LINE_LIMIT)).decode("utf-8", "replace").strip().splitlines()
        return (
            f"the load generator ended by itself (status {process.returncode}): {words[-1] if words else '?'}"
        )

    async def _bury(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            self.stop()
            await process.wait()
        if self._killer is not None:
            self._killer.cancel()
        self._killer = self._process = None

    @staticmethod
    def _kill(process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
