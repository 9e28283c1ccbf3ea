"""Start a real agent in a child process, talk to it and read its frames through the client's decoder."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from specdash.monitor import frames

ROOT = Path(__file__).resolve().parents[2]
F = TypeVar("F", bound=frames.Frame)

# As the loader does it.
_START = "import json, sys; from specdash.agent.main import main; main(0, 1, json.loads(sys.argv[1]))"


def interpreters() -> dict[str, str]:
    """Version -> path of every Python from 3.6 on that common places hold, one for each minor version."""
    places = [sys.executable, "/usr/bin/python3", "/usr/libexec/platform-python", "/opt/conda/bin/python3"]
    places += [place for minor in range(6, 20) if (place := shutil.which(f"python3.{minor}"))]
    for folder in (Path.home() / ".pyenv/versions", Path("/opt/python"), Path("/opt/hostedtoolcache/Python")):
        places += sorted(map(str, [*folder.glob("*/bin/python"), *folder.glob("*/x64/bin/python")]))
    found: dict[str, str] = {}
    for place in places:
        try:
            asked = [place, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            version = subprocess.run(
                asked, capture_output=True, text=True, timeout=120, check=True
            ).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            continue
        if tuple(map(int, version.split("."))) >= (3, 6):
            found.setdefault(version, place)
    return dict(sorted(found.items(), key=lambda item: tuple(map(int, item[0].split(".")))))


def binding(folder: Path) -> Path:
    """A folder that holds nvidia-ml-py's one module and nothing else, for every interpreter."""
    spec = importlib.util.find_spec("pynvml")
    assert spec is not None
    assert spec.origin is not None
    folder.mkdir(exist_ok=True)
    (folder / "pynvml.py").symlink_to(spec.origin)
    return folder


class RunningAgent:
    """One agent and what it has said. A context manager: leaving it ends the agent."""

    def __init__(
        self,
        python: str = sys.executable,
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        path: Path | None = None,
    ) -> None:
        folders = [str(ROOT)] + ([str(path)] if path else [])
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(folders),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.process = subprocess.Popen(
            [python, "-c", _START, json.dumps({"version": "9.9", **(options or {})})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environ, **(env or {})},
        )
        self.said: list[frames.Frame] = []
        self.raw: list[bytes] = []
        self._queue: queue.Queue[frames.Frame | Exception | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> RunningAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(30)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.raw.append(line)
            try:
                self._queue.put(frames.decode(line))
            except ValueError as error:
                self._queue.put(ValueError(f"{error}: {line[:300]!r}"))
        self._queue.put(None)

    def ask(self, r: str, **fields: Any) -> None:
        """Send one request."""
        self.write(json.dumps({"r": r, **fields}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self, limit: float = 60.0) -> frames.Frame | None:
        """The next frame, or None at the end. A line that does not decode fails the test."""
        frame = self._queue.get(timeout=limit)
        if isinstance(frame, Exception):
            raise frame
        if frame is not None:
            self.said.append(frame)
        return frame

    def wait(self, kind: type[F], such: Callable[[F], object] = lambda frame: True, limit: float = 60.0) -> F:
        """The next frame of this kind for which ``such`` holds."""
        until = time.monotonic() + limit
        while True:
            try:
                frame = self.next(max(0.01, until - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no such {kind.__name__}; said: {self.said[-12:]}") from None
            if frame is None:
                raise AssertionError(f"the agent has ended; said: {self.said[-12:]}, stderr: {self.stderr()}")
            if isinstance(frame, kind) and such(frame):
                return frame

    def stderr(self) -> str:
        """What was printed on stderr by an agent that has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self, limit: float = 60.0) -> int:
        """Close the agent's stdin and wait; returns its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(limit)


def complaints(agent: RunningAgent) -> list[str]:
    """What it has said about itself, but for what every file system of a busy machine makes it say."""
    notes = [frame.text for frame in agent.said if isinstance(frame, frames.Note)]
    return [text for text in notes if "no answer about" not in text]
