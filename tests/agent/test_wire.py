from __future__ import annotations

import json
import os

import pytest

from specdash.agent import wire
from specdash.monitor import frames


@pytest.mark.parametrize(
    "text",
    ["plain", "Zürich 東京 🚀", "a\x00b\x1b[31m\u2028", '"\\', "\udcff", "x\udc80\udc81y", "\ud83d\ude80"],
)
def test_any_string_makes_a_frame_that_decodes(text: str) -> None:
    line = wire.encode({"t": "note", "at": 1.0, "level": "info", "text": text})
    assert line.count(b"\n") == 1
    note = frames.decode(line)
    assert isinstance(note, frames.Note)
    assert note.text == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def test_lone_surrogates_are_cleaned_at_any_depth() -> None:
    assert json.loads(wire.encode({"a": [{"\udc80": ("\udc81",)}]})) == {"a": [{"\ufffd": ["\ufffd"]}]}


@pytest.mark.parametrize("raw", [b"", b"whole \xe2\x96\x88 text\r\n", b"half \xe2\x96", bytes(range(256))])
def test_log_bytes_come_back_as_they_were(raw: bytes) -> None:
    frame = {"t": "log", "at": 1.0, "path": "/x", "file": "1:2", "offset": 0, "size": 9, **wire.payload(raw)}
    log = frames.decode(wire.encode(frame))
    assert isinstance(log, frames.Log)
    assert log.raw == raw
    assert (log.text is None) == (raw not in (b"", b"whole \xe2\x96\x88 text\r\n"))


def test_lines_are_put_together_from_pieces_and_giants_are_dropped_whole() -> None:
    lines = wire.Lines(limit=10)
    assert lines.feed(b"ab") == []
    assert lines.feed(b"c\n\n \nde\nf") == [b"abc", b"de"]
    assert lines.feed(b"0123456789") == []
    assert lines.feed(b"still the same\nnext\n") == [None, b"next"]
    assert lines.feed(b"0123456789AB\nx\n") == [None, b"x"]
    assert lines.feed(b"0123456789AB") == []
    assert lines._rest == b""  # a line without an end takes no memory
    assert lines.feed(b"CD\ny\n") == [None, b"y"]


@pytest.fixture
def outbox() -> wire.Outbox:
    return wire.Outbox()


def test_a_newer_sample_takes_the_place_of_one_that_waits(outbox: wire.Outbox) -> None:
    for n in range(1000):
        outbox.put({"n": n}, "gpus")
        outbox.put({"note": n})
    assert outbox.take() == b'{"n":999}\n'
    assert [json.loads(outbox.take() or b"")["note"] for _ in range(1000)] == list(range(1000))
    assert outbox.take() is None


def test_samples_overtake_log_bytes_and_log_bytes_are_held_back(outbox: wire.Outbox) -> None:
    told: list[bool] = []
    outbox.on_room = lambda: told.append(True)
    chunk = b"x" * 50_000
    sent = 0
    while outbox.log_room():
        outbox.put_log(chunk)
        sent += 1
    assert sent == 3
    outbox.put({"late": 1})
    assert outbox.take() == b'{"late":1}\n'
    assert told == []
    assert [outbox.take() for _ in range(4)] == [chunk] * 3 + [None]
    assert told == [True]
    assert outbox.log_room()


def test_putting_wakes_the_main_loop_once(outbox: wire.Outbox) -> None:
    for _ in range(100):
        outbox.put({})
    assert os.read(outbox.wake_fd, 4096) == b"!"
    outbox.drain_wake()
    outbox.put({})
    assert os.read(outbox.wake_fd, 4096) == b"!"
