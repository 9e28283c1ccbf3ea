"""An evidence bundle: what was seen of a host, in one file that can be attached to a bug report.

Everything in it has passed the door: no escape codes, and secrets that are known by their name or their look
are redacted. Nothing is asked of the host for it.
"""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from specdash import __version__
from specdash.logs.buffer import LogBuffer
from specdash.monitor.naming import host_in_full
from specdash.monitor.spans import ago
from specdash.monitor.state import HostState
from specdash.monitor.status import encode, status_document
from specdash.reports.look import describe
from specdash.sanitise import clean_line

LOG_LINES: Final = 2000
"""Lines of each log, the newest."""
RECORDING_MOST: Final = 16 << 20
"""Bytes; a larger recording stays where it is, and the bundle says where."""


def name_of(state: HostState) -> str:
    """``evidence-gpubox-20261129-182453``: host, and the moment on its clock in local time."""
    host = re.sub(r"[^A-Za-z0-9.-]+", "-", state.target.rpartition("@")[2]).strip("-.") or "host"
    return f"evidence-{host[:60]}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(state.now))}"


def bundle(state: HostState, logs: Mapping[str, LogBuffer], recording: Path | None = None) -> bytes:
    """The bundle as ``.tar.gz``. ``logs``: server's name → its log; ``recording``: one under way, if any."""
    folder = name_of(state)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
        for name, data in _files(state, logs, recording):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(state.now), 0o600
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _files(
    state: HostState, logs: Mapping[str, LogBuffer], recording: Path | None
) -> Iterator[tuple[str, bytes]]:
    kept, words = _recording(recording)
    texts = {
        "README.txt": _readme(state, words),
        "verdict.txt": "\n".join(
            describe(msgspec.structs.replace(state, reached_by=""))
        ),  # paths of this machine
        "alerts.txt": "\n".join(_alerts(state)),
        "events.txt": "\n".join(_events(state)),
        "status.json": encode(status_document(state)),
        **(
            {"kernel.txt": "\n".join(f"{_clock(k.at)} {k.text}" for k in state.kernel)}
            if state.kernel
            else {}
        ),
    }
    for name, text in texts.items():
        yield name, text.encode("utf-8", "replace") + b"\n"
    for name, buffer in logs.items():
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") or "server"
        yield (
            f"log-{plain[:60]}.txt",
            "".join(f"{line}\n" for line in _tail(buffer)).encode("utf-8", "replace"),
        )
    if kept is not None:
        yield "recording.specdash.gz", kept


def _tail(buffer: LogBuffer) -> Iterator[str]:
    first = max(buffer.first_line, buffer.lines - LOG_LINES + 1)
    for line in range(first, buffer.lines + 1):
        yield buffer.text(line)


def _recording(path: Path | None) -> tuple[bytes | None, str]:
    """Its bytes as far as they are written, and what to say of it."""
    if path is None:
        return None, "none was made; connect --record makes one"
    try:
        size = path.stat().st_size
        if size > RECORDING_MOST:
            return None, f"too large to be put in here: {path} ({size >> 20} MiB)"
        return path.read_bytes(), "recording.specdash.gz: specdash replay plays it"
    except OSError as error:
        return None, f"{path} could not be read: {error.strerror or error}"


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _readme(state: HostState, recording: str) -> str:
    facts = state.host
    return "\n".join(
        [
            f"Evidence of {clean_line(host_in_full(state))}, {_clock(state.now)}, by specdash {__version__}.",
            f"Link: {state.link.state}{f' ({state.link.reason})' if state.link.reason else ''}.",
            *([f"Host: {facts.name} as {facts.user}, Python {facts.python}."] if facts else []),
            "",
            "verdict.txt   what specdash makes of it, and why",
            "status.json   the same and all values, as specdash status --json prints them",
            "alerts.txt    alerts that stand",
            "events.txt    what has happened while it was watched",
            f"log-*.txt     the last {LOG_LINES:,} lines of each server's log",
            "kernel.txt    what the kernel said of GPUs and memory, where that could be read",
            f"Recording: {recording}.",
            "",
            "Secrets that are known by their name or look were redacted. Read it before you pass it on:",
            "model names, paths, addresses and prompts in logs are as they were.",
        ]
    )


def _alerts(state: HostState) -> Iterator[str]:
    if not state.alerts:
        yield "none stands"
    for alert in state.alerts:
        yield f"{_clock(alert.at)} {alert.severity:7} {alert.text}"


def _events(state: HostState) -> Iterator[str]:
    yield f"{len(state.events)} events; times of the host, the last one {_last(state)}"
    for event in state.events:
        yield f"{_clock(event.at)} {event.kind:8} {event.severity:7} {event.text}"


def _last(state: HostState) -> str:
    return f"{ago(state.now - state.events[-1].at)} before this was written" if state.events else "never"
