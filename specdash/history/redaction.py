"""What a recording may hold: a file that is given to others keeps no secret of the host.

Frames have passed the door already. Here their log bytes are looked at, too, line by line, and the
environment is cut down to the variables that steer an engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from specdash.monitor.frames import AnyFrame, Glimpse, Log, Pong, Processes, Reply
from specdash.monitor.samples import Process
from specdash.sanitise import REDACTED, clean_line, redact

ENV_KEPT = ("NCCL_", "CUDA_", "VLLM_", "SGLANG_")
"""Beginnings of the names of variables whose values a recording keeps."""

LINE_LOOKED_AT = 64 << 10
"""A line that grows longer than this without an end is no longer looked at as one."""

_SEGMENT = re.compile(rb"[^\r\n]*(?:[\r\n]+|\Z)")
_LEFT_OUT = (Pong, Reply, Glimpse)

replace = msgspec.structs.replace


class Redactor:
    """Makes frames fit for a file, one after another. Remembers the unfinished line of each log."""

    def __init__(self) -> None:
        self._lines: dict[str, _OpenLine] = {}

    def admit(self, frame: AnyFrame) -> AnyFrame | None:
        """The frame as it may be kept; None where it is not kept.

        Answers to pings tell nothing that a ``link`` frame does not, replies to requests may hold whatever
        the operator asked for, and what a glimpse has comes again.
        """
        if isinstance(frame, _LEFT_OUT):
            return None
        if isinstance(frame, Log):
            return self._log(frame)
        if isinstance(frame, Processes):
            return replace(frame, list=tuple(map(_process, frame.list)))
        return frame

    def _log(self, frame: Log) -> Log:
        line = self._lines.setdefault(frame.path, _OpenLine())
        more_to_come = frame.offset + len(frame.raw) < frame.size
        kept = line.take(frame.raw, joined=frame.break_ is None, hold=more_to_come)
        if kept == frame.raw:
            return frame
        # What is said of the file's end stays true although the bytes are others now.
        size = frame.size + len(kept) - len(frame.raw)
        try:
            return replace(frame, text=kept.decode(), data=None, size=size)
        except UnicodeDecodeError:
            return replace(frame, text=None, data=kept, size=size)


@dataclass
class _OpenLine:
    """The end of a log that no LF or CR has ended yet."""

    written: bytes = b""
    """What of it stands in the recording already."""
    held: bytes = b""
    """What of it waits for its end."""

    def take(self, raw: bytes, *, joined: bool, hold: bool) -> bytes:
        """The next bytes without secrets. ``hold``: keep an unfinished line back until its end comes."""
        out: list[bytes] = []
        if not joined:
            out.append(_clean(self.held))
            self.written = self.held = b""
        for segment in _SEGMENT.findall(self.held + raw):
            if segment.endswith((b"\r", b"\n")):
                out.append(self._finish(segment))
                self.written = b""
            elif segment:
                out.append(self._begin(segment, hold=hold))
                return b"".join(out)
        self.held = b""
        return b"".join(out)

    def _begin(self, segment: bytes, *, hold: bool) -> bytes:
        """A line without an end: a bar, which must move, or a piece of a line, which must wait."""
        whole = self.written + segment
        if len(whole) <= LINE_LOOKED_AT and (hold or _clean(whole) != whole):
            self.held = segment
            return b""
        kept = self._finish(segment)
        self.written, self.held = whole[-LINE_LOOKED_AT:], b""
        return kept

    def _finish(self, segment: bytes) -> bytes:
        if not self.written:
            return _clean(segment)
        whole = self.written + segment
        cleaned = _clean(whole)
        if cleaned.startswith(self.written):
            return cleaned[len(self.written) :]
        # The secret began in what is written already: the rest of the line goes.
        end = segment[len(segment.rstrip(b"\r\n")) :]
        return REDACTED.encode() + end


def _clean(raw: bytes) -> bytes:
    """A line without its secrets; otherwise byte for byte what it was."""
    text = raw.decode("utf-8", "surrogateescape")
    kept = redact(text)
    if "\x1b" in text:
        end = text[len(text.rstrip("\r\n")) :]
        plain = clean_line(text)
        if plain.count(REDACTED) != kept.count(REDACTED):
            # An escape code stood inside a name or a value.
            kept = plain + end
    return raw if kept == text else kept.encode("utf-8", "surrogateescape")


def _process(process: Process) -> Process:
    argv = tuple(_words(process.argv))
    env = None if process.env is None else dict(_variables(process.env))
    return replace(process, argv=argv, env=env)


def _words(argv: tuple[str, ...]) -> list[str]:
    """A command line without the values of options that hold secrets."""
    shown: list[str] = []
    for word in argv:
        before = shown[-1] if shown else ""
        pair = f"{before} {word}"
        shown.append(REDACTED if before.startswith("-") and redact(pair).endswith(REDACTED) else redact(word))
    return shown


def _variables(env: dict[str, str]) -> list[tuple[str, str]]:
    kept = [(name, value) for name, value in env.items() if name.startswith(ENV_KEPT)]
    return [
        (name, REDACTED if redact(f"{name}={value}").endswith(f"={REDACTED}") else redact(value))
        for name, value in kept
    ]
