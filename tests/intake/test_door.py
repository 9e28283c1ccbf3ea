"""What comes in from a host is clean, and cannot exhaust us."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.history.recording import Recording
from specdash.intake.door import admit
from specdash.monitor.frames import Http, Note, Reply, decode


def _nested(depth: int, kind: str) -> str:
    return "[" * depth + "1" + "]" * depth if kind == "lists" else '{"a":' * depth + "1" + "}" * depth


def _depth(value: Any) -> int:
    deep = 0
    while isinstance(value, list | dict) and value:
        value = value[0] if isinstance(value, list) else value["a"]
        deep += 1
    return deep


def test_a_host_cannot_write_lines_of_its_own_among_ours() -> None:
    note = admit(Note(at=1.0, level="info", text="\r\nfine\n12:00 ALARM\rgone\x1b[2J"))
    assert note == Note(at=1.0, level="info", text="fine 12:00 ALARM gone")
    failed = admit(Reply(at=1.0, id="x", ok=False, error="no\nyes", value={"diff": ["a\nb\x1b[1m\n"]}))
    assert failed == Reply(at=1.0, id="x", ok=False, error="no yes", value={"diff": ["a\nb\n"]})
    answer = admit(Http(at=1.0, server="k", path="/x", error="not HTTP: a\nb", body="one\x07\ntwo\n"))
    assert answer == Http(at=1.0, server="k", path="/x", error="not HTTP: a b", body="one\ntwo\n")


@pytest.mark.parametrize("kind", ["lists", "objects"])
@pytest.mark.parametrize("depth", [5, 400, 900])
def test_an_answer_that_nests_without_end_is_cut_and_not_followed(depth: int, kind: str) -> None:
    frame = admit(
        decode(f'{{"t":"reply","at":1,"id":"x","ok":true,"value":{_nested(depth, kind)}}}'.encode())
    )
    assert isinstance(frame, Reply)
    assert _depth(frame.value) == depth if depth < 32 else 5 < _depth(frame.value) < 64
    msgspec.json.encode(frame)


def test_a_strangers_recording_with_an_endless_answer_is_played_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.specdash.gz"
    lines = ['{"t":"recording","schema":1,"specdash":"0","host":"h","started":1,"redacted":true}']
    lines += [
        f'{{"t":"reply","at":1,"id":"x","ok":true,"value":{_nested(n, "lists")}}}' for n in (900, 90_000)
    ]
    path.write_bytes(gzip.compress("\n".join([*lines, '{"t":"tick","at":2}', ""]).encode()))
    assert [type(frame).__name__ for frame in Recording(path).frames()][-1] == "Tick"
