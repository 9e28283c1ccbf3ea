"""Frames as an agent sends them, for recordings."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal

import msgspec

from specdash.monitor import frames, samples
from specdash.monitor.frames import AnyFrame

T0 = 1_700_000_000.0


def hello(at: float = T0) -> AnyFrame:
    return frames.Hello(
        at=at, proto=1, specdash="0.1.0", host="gpubox", boot="b", pid=1, uid=0, user="root", python="3.12"
    )


def tick(second: float) -> AnyFrame:
    return frames.Tick(at=T0 + second)


def log(
    text: str | bytes,
    second: float = 0.0,
    *,
    offset: int = 0,
    more: int = 0,
    break_: Literal["start", "rotated"] | None = None,
    mtime: float = 0.0,
) -> frames.Log:
    """``more``: bytes of the file that are still behind."""
    raw = text if isinstance(text, bytes) else text.encode()
    return frames.Log(
        at=T0 + second,
        path="/var/log/x.log",
        file="1:2",
        offset=offset,
        size=offset + len(raw) + more,
        text=text if isinstance(text, str) else None,
        data=text if isinstance(text, bytes) else None,
        break_=break_,
        mtime=mtime,
    )


def server(pid: int = 700, state: str = "S") -> samples.Process:
    return samples.Process(
        pid=pid,
        ppid=1,
        start=5,
        started=T0,
        sid=pid,
        state=state,
        comm="python3",
        argv=("python3", "-m", "sglang.launch_server", "--port", "30000"),
        out="/var/log/x.log",
        err="/var/log/x.log",
    )


def written(path: Path, *lines: bytes | AnyFrame, header: bool = True) -> Path:
    """A recording with exactly these lines."""
    first = [
        b'{"t":"recording","schema":1,"specdash":"0.1.0","host":"gpubox","started":1700000000.0,"redacted":true}'
    ]
    raw = [line if isinstance(line, bytes) else msgspec.json.encode(line) for line in lines]
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in (first if header else []) + raw)))
    return path
