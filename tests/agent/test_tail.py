"""A log is read in order and told of in frames; what cannot be read is named."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from specdash.agent import rotation, tailfile
from specdash.agent.tail import WINDOW, Tails
from specdash.agent.wire import MAX_FRAME, Outbox
from specdash.monitor import frames
from specdash.monitor.frames import LogState
from tests.agent.follower import Follower, TestHost, add
from tests.agent.hands import until


def test_bytes_come_in_order_with_their_place(log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    assert follower.look() == b"one\n"
    add(log, b"two\nthr")
    assert follower.look() == b"two\nthr"
    add(log, b"ee\n")
    assert follower.look() == b"ee\n"
    first, second, third = follower.logs
    assert (first.break_, second.break_, third.break_) == ("start", None, None)
    assert (first.offset, second.offset, third.offset, third.size) == (0, 4, 11, 14)
    status = log.stat()
    assert (first.file, first.path) == (f"{status.st_dev}:{status.st_ino}", str(log))
    assert third.mtime == status.st_mtime
    assert third.head == hashlib.sha1(b"one\ntwo\nthree\n").hexdigest()


def test_lines_of_a_server_that_never_rests_come_together_once_a_second_until_it_does(log: Path) -> None:
    log.write_bytes(b"")
    follower = Follower(log)

    def pause() -> float:
        """Seconds until the next look, which is then taken."""
        follower.tail.step()
        waited = follower.tail.due - follower.host.clock
        follower.host.clock = follower.tail.due
        return waited

    assert pause() == 0.25
    pauses = []
    for _ in range(200):
        add(log, b"Decode batch\n")
        pauses.append(pause())
    assert sum(wait for wait in pauses if wait < 1.0) == pytest.approx(60.0, abs=1.0)
    assert pauses == sorted(pauses, key=lambda wait: wait >= 1.0), (
        "first a minute of half seconds, then whole ones"
    )
    assert pause() == 0.25, "it rests: the next line is wanted at once"
    add(log, b"Traceback\n")
    assert pause() < 1.0


@pytest.mark.parametrize(
    ("content", "backlog", "first"),
    [
        (b"aaaa\nbbbb\ncccc\n", 100, b"aaaa\nbbbb\ncccc\n"),
        (b"aaaa\nbbbb\ncccc\n", 10, b"bbbb\ncccc\n"),
        (b"aaaa\nbbbb\ncccc\n", 9, b"cccc\n"),
        (b"aaaa\rbbbb\rcccc", 9, b"bbbb\rcccc"),
        (b"x" * 50 + "▇▇▇".encode(), 8, "▇▇".encode()),
        (b"aaaa\nbbbb\n", 0, b""),
    ],
)
def test_a_big_log_is_opened_near_its_end_at_a_whole_line(
    log: Path, content: bytes, backlog: int, first: bytes
) -> None:
    log.write_bytes(content)
    assert Follower(log, backlog=backlog).look() == first


def test_a_progress_bar_of_carriage_returns_is_seen_before_its_newline(log: Path) -> None:
    log.write_bytes(b"")
    follower = Follower(log)
    follower.look()
    for step in range(3):
        add(log, b"\rLoading shards:  %d/3" % step)
        assert follower.look() == b"\rLoading shards:  %d/3" % step


def test_text_is_cut_between_characters_and_other_bytes_come_as_they_are(log: Path) -> None:
    log.write_bytes(b"")
    follower = Follower(log)
    follower.look()
    whole = "50% ███ 東京 🚀\n".encode()
    for at in range(0, len(whole), 5):  # the writer flushes in the middle of characters
        add(log, whole[at : at + 5])
        follower.look()
    assert follower.text == whole
    assert all(frame.text is not None for frame in follower.logs)
    add(log, b"bad \xff\xfe bytes\n")
    assert follower.look() == b"bad \xff\xfe bytes\n"
    assert follower.logs[-1].data == b"bad \xff\xfe bytes\n"


def test_half_a_character_that_never_ends_is_sent_after_two_seconds(log: Path) -> None:
    log.write_bytes(b"")
    follower = Follower(log)
    follower.look()
    add(log, b"\xe2\x96")
    for _ in range(10):
        assert follower.look() == b""
    assert follower.look() == b"\xe2\x96"


@pytest.mark.parametrize(
    "filler",
    [b"x" * 180 + b"\n", b"\x1b[31m\x00\x01" * 9 + b"\n", bytes(range(256)), "█▇🚀".encode()],
    ids=["lines", "escapes", "binary", "blocks"],
)
def test_a_backlog_comes_whole_in_frames_of_at_most_64_kib(log: Path, filler: bytes) -> None:
    content = filler * (600_000 // len(filler))
    log.write_bytes(content)
    follower = Follower(log)
    follower.look()
    assert follower.text == content
    assert max(map(len, follower.lines)) <= MAX_FRAME
    assert max(len(frame.raw) for frame in follower.logs) <= 48 * 1024


def test_no_more_than_the_credit_window_is_under_way(log: Path) -> None:
    log.write_bytes(b"0123456789abcde\n" * 200_000)  # 3.2 MB
    follower = Follower(log)
    follower.look(acknowledge=False)
    under_way = sum(len(frame.raw) for frame in follower.logs)
    assert WINDOW <= under_way < WINDOW + 48 * 1024
    assert follower.look(acknowledge=False) == b""
    follower.tail.acknowledge(follower.logs[3].offset + len(follower.logs[3].raw))
    assert len(follower.look(acknowledge=False)) == 4 * len(follower.logs[0].raw)
    follower.tail.acknowledge(10**9)
    assert len(follower.look(acknowledge=False)) >= WINDOW


def test_a_missing_file_is_told_of_once_and_picked_up_when_it_appears(log: Path) -> None:
    follower = Follower(log)
    for _ in range(3):
        follower.look()
    assert [state.error for state in follower.states] == ["no such file"]
    log.write_bytes(b"here\n")
    assert follower.look() == b"here\n"
    assert [state.error for state in follower.states] == ["no such file", None]


def test_a_silent_log_tells_its_size_and_age_at_once_and_every_ten_seconds(log: Path) -> None:
    log.write_bytes(b"eight hours ago\n")
    os.utime(log, (500, 500))
    status = log.stat()
    follower = Follower(log, cursor={"file": f"{status.st_dev}:{status.st_ino}", "offset": 16, "head": None})
    follower.look()
    assert [(state.size, state.mtime, state.error) for state in follower.states] == [(16, 500.0, None)]
    for _ in range(49):
        follower.look()
    assert len(follower.states) == 1
    follower.look()
    assert len(follower.states) == 2


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("fifo", "a pipe: whoever reads it takes the bytes away"),
        ("folder", "a folder, not a file"),
        ("device", "a terminal or another character device, not a file"),
    ],
)
def test_what_is_no_file_is_named_and_never_opened(tmp_path: Path, kind: str, says: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/null")
    follower = Follower(path)
    follower.look()
    assert [state.error for state in follower.states] == [says]


@pytest.mark.parametrize("name", ["a\\x00b", "a\ud800b"])
def test_a_name_that_no_file_can_have_is_named_and_holds_up_no_other_log(log: Path, name: str) -> None:
    log.write_bytes(b"one\n")
    outbox = Outbox()
    complaints: list[str] = []
    tails = Tails(TestHost(), outbox, complaints.append)
    for path in (str(log.with_name(name)), str(log)):
        tails.follow({"path": path, "backlog": 100})
    tails.crew.start()
    told: dict[str, bytes] = {}
    until(lambda: told.update(_kinds(outbox)) or complaints or set(told) >= {"logstate", "log"})
    tails.crew.stop()
    assert not complaints
    assert b"no file can be called so" in told["logstate"]
    assert b"one" in told["log"]


def _kinds(outbox: Outbox) -> dict[str, bytes]:
    lines = iter(outbox.take, None)
    return {json.loads(line)["t"]: line for line in lines}


def test_a_file_that_opens_and_cannot_be_read_leaves_no_descriptor_open(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network disk says so for each of a thousand tries: no descriptor would be left for anything else."""
    log.write_bytes(b"one\n")
    cursor = {"file": tailfile.identity(log.stat()), "offset": 4, "head": "0", "tail": "0"}

    def stale(fd: int, count: int, offset: int) -> bytes:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(os, "pread", stale)
    for _ in range(10):
        with pytest.raises(tailfile.Refused, match="Stale"):
            rotation.find(str(log), cursor)
    assert log.resolve() not in [fd.resolve() for fd in Path("/proc/self/fd").iterdir()]


def test_a_file_that_may_not_be_read_is_told_of(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(b"secret\n")

    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    follower = Follower(log)
    follower.look()
    assert [state.error for state in follower.states] == ["permission denied"]


def test_a_file_system_that_hangs_holds_up_no_other_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, release, sent = threading.Event(), threading.Event(), threading.Event()
    real = tailfile.open_file

    def open_file(path: str) -> tailfile.Opened:
        if path == "/dead/server.log":
            hung.set()
            release.wait(120)
            raise tailfile.Refused("it came back")
        return real(path)

    monkeypatch.setattr(tailfile, "open_file", open_file)
    outbox, host = Outbox(), TestHost()
    monkeypatch.setattr(outbox, "put_log", lambda line: sent.set())
    tails = Tails(host, outbox, pytest.fail)
    tails.follow({"path": "/dead/server.log", "backlog": 100})
    tails.crew.start()
    assert hung.wait(60)
    (tmp_path / "server.log").write_bytes(b"one\n")
    tails.follow({"path": str(tmp_path / "server.log"), "backlog": 100})
    host.clock += 5
    assert tails.crew.relieve() == "/dead/server.log"
    assert sent.wait(60)
    said = frames.decode(outbox.take() or b"")
    assert isinstance(said, LogState)
    assert (said.path, said.error) == ("/dead/server.log", "no answer from the file system for 5 s")
    release.set()
    tails.crew.stop()


def test_the_last_lines_of_a_long_backlog_come_before_it_and_again_in_their_place(log: Path) -> None:
    content = b"".join(b"%06d %s\n" % (n, b"x" * 100) for n in range(20_000))
    log.write_bytes(content)
    follower = Follower(log)
    assert follower.look() == content
    [glimpse] = follower.glimpses
    assert follower.lines[0].startswith(b'{"t":"glimpse"'), "before all else"
    assert glimpse.size == len(content)
    assert content.endswith(glimpse.raw)
    assert glimpse.raw[:6].isdigit()
    assert glimpse.raw.count(b"\n") > 60
    again = Follower(log, cursor=follower.cursor)
    again.look()
    assert again.glimpses == [], "who goes on has them already"


@pytest.mark.parametrize("byte", [b"\x1b", b"\xff", "█".encode(), b"\n"])
def test_a_glimpse_fits_into_a_frame_whatever_the_bytes(log: Path, byte: bytes) -> None:
    log.write_bytes(byte * 100_000)
    follower = Follower(log)
    follower.look()
    assert len(follower.glimpses) == 1
    assert max(map(len, follower.lines)) <= MAX_FRAME
