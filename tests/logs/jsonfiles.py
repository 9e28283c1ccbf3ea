"""What docker's log driver json-file makes of a server's output, by moby's rules, without a docker."""

from __future__ import annotations

import json
from collections.abc import Iterable

MOST = 16 * 1024
"""Bytes of a line that docker takes at once (moby, daemon/logger/copier.go: defaultBufSize)."""


def record(text: str, stream: str = "stderr", second: int = 0) -> bytes:
    """One line of the file, as Go writes it: ``<``, ``>`` and ``&`` escaped, other text as it is."""
    said = json.dumps(text, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        said = said.replace(char, f"\\u{ord(char):04x}")
    time = f"2026-11-29T22:{second // 60 % 60:02d}:{second % 60:02d}.123456789Z"
    return f'{{"log":{said},"stream":"{stream}","time":"{time}"}}\n'.encode()


def parts(output: bytes) -> Iterable[bytes]:
    """A stream's output as docker takes it: by lines, long ones by 16 KiB."""
    while output:
        end = output.find(b"\n", 0, MOST) + 1 or min(MOST, len(output))
        yield output[:end]
        output = output[end:]


def json_file(output: bytes, stream: str = "stderr") -> bytes:
    """The file of a container that printed this; text beyond ASCII must not stand where 16 KiB end."""
    return b"".join(
        record(part.decode("utf-8", "replace"), stream, second) for second, part in enumerate(parts(output))
    )
