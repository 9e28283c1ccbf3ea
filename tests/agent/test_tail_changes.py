"""A log that is renamed, copied, cut, replaced or deleted, while it is followed or while nobody looks."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import rotation, tailfile
from specdash.agent.tail import WINDOW
from tests.agent.follower import Follower, add


def test_a_rename_is_followed_after_the_old_file_was_read_to_its_end(log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    follower.look()
    add(log, b"two\n")
    log.rename(log.with_name("server.log.1"))
    log.write_bytes(b"three\n")
    assert follower.look() == b"two\nthree\n"
    assert follower.breaks == ["start", "rotated"]
    assert follower.logs[-1].offset == 0


def test_a_server_that_writes_on_into_the_renamed_file_is_still_heard(log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    follower.look()
    old = log.with_name("server.log.1")
    log.rename(old)
    assert follower.look() == b""
    log.write_bytes(b"")  # logrotate's "create", while the server holds the old file
    assert follower.look() == b""
    add(old, b"two\n")
    assert follower.look() == b"two\n"
    assert follower.states == []


def test_acknowledgements_of_the_old_file_give_no_credit_for_the_new_one(log: Path) -> None:
    log.write_bytes(b"0123456789abcde\n" * 30_000)
    follower = Follower(log)
    follower.look(acknowledge=False)
    log.rename(log.with_name("server.log.1"))
    log.write_bytes(b"fedcba987654321\n" * 100_000)
    follower.look(acknowledge=False)
    under_way = sum(len(frame.raw) for frame in follower.logs)
    assert under_way < WINDOW + 48 * 1024
    follower.tail.acknowledge(480_000)  # all of the old file
    assert len(follower.look(acknowledge=False)) >= 480_000 - 48 * 1024


def test_a_file_cut_to_nothing_is_read_from_its_beginning(log: Path) -> None:
    log.write_bytes(b"a long first life\n")
    follower = Follower(log)
    follower.look()
    os.truncate(log, 0)
    add(log, b"new\n")
    assert follower.look() == b"new\n"
    assert follower.breaks == ["start", "truncated"]


def test_a_file_cut_to_nothing_is_noticed_although_it_has_outgrown_our_place(log: Path) -> None:
    log.write_bytes(b"short\n")
    follower = Follower(log)
    follower.look()
    os.truncate(log, 0)
    add(log, b"something longer than before\n")
    assert follower.look() == b"something longer than before\n"
    assert follower.breaks == ["start", "truncated"]


def test_a_replaced_file_is_followed(log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    follower.look()
    fresh = log.with_name("fresh")
    fresh.write_bytes(b"two\n")
    fresh.replace(log)
    assert follower.look() == b"two\n"
    assert follower.breaks == ["start", "replaced"]


def test_a_deleted_file_is_told_of_and_still_read(log: Path) -> None:
    log.write_bytes(b"one\n")
    with log.open("ab", buffering=0) as server:
        follower = Follower(log)
        follower.look()
        log.unlink()
        follower.look()
        assert "deleted" in (follower.states[-1].error or "")
        server.write(b"two\n")
        assert follower.look() == b"two\n"


def test_a_link_that_was_cut_goes_on_where_it_stopped(log: Path) -> None:
    log.write_bytes(b"one\ntwo\n")
    first = Follower(log)
    first.look()
    add(log, b"three\n")
    second = Follower(log, cursor=first.cursor)
    assert second.look() == b"three\n"
    assert second.breaks == []


def test_a_reader_that_was_away_for_two_rotations_loses_no_line(log: Path) -> None:
    log.write_bytes(b"1\n")
    first = Follower(log)
    first.look()
    add(log, b"2\n")
    log.rename(log.with_name("server.log.1"))
    log.write_bytes(b"3\n")
    log.with_name("server.log.1").rename(log.with_name("server.log.2"))
    log.rename(log.with_name("server.log.1"))
    log.write_bytes(b"4\n")
    log.with_name("server.log.err").write_bytes(b"another log\n")
    for seconds, name in (
        (10, "server.log.2"),
        (20, "server.log.1"),
        (30, "server.log.err"),
        (40, "server.log"),
    ):
        os.utime(log.with_name(name), (seconds, seconds))
    second = Follower(log, cursor=first.cursor)
    assert second.look() == b"2\n3\n4\n"
    assert second.breaks == ["rotated", "rotated"]


@pytest.mark.parametrize("change", ["copytruncate", "another file"])
def test_what_cannot_be_joined_is_a_gap_and_starts_anew(log: Path, change: str) -> None:
    log.write_bytes(b"old life\n" * 10)
    first = Follower(log)
    first.look()
    if change == "copytruncate":
        os.truncate(log, 0)
    else:
        log.rename(log.with_name("elsewhere"))
    add(log, b"a new life, longer than the old one was\n" * 10)
    second = Follower(log, cursor=first.cursor)
    assert second.look() == b"a new life, longer than the old one was\n" * 10
    assert second.breaks == ["gap"]


@pytest.mark.parametrize("away", [True, False])
def test_a_file_that_was_copied_and_cut_is_read_to_its_end_in_the_copy(log: Path, away: bool) -> None:
    log.write_bytes(b"1\n")
    follower = Follower(log)
    follower.look()
    add(log, b"2\n")
    shutil.copyfile(log, log.with_name("server.log.1"))
    os.truncate(log, 0)
    if away:
        follower = Follower(log, cursor=follower.cursor)
    assert follower.look() == b"2\n"
    add(log, b"3\n")
    assert follower.look() == b"3\n"
    assert follower.breaks[-1:] == ["rotated"]


def test_a_sibling_that_merely_begins_alike_is_no_copy(log: Path) -> None:
    banner = b"=" * 300 + b"\n"
    log.with_name("server.log.1").write_bytes(banner + b"another life, and a longer one\n" * 9)
    log.write_bytes(banner + b"this life\n")
    follower = Follower(log)
    follower.look()
    os.truncate(log, 0)
    add(log, b"again\n")
    assert follower.look() == b"again\n"
    assert follower.breaks == ["start", "truncated"]


def test_a_new_file_of_the_same_number_that_begins_alike_is_not_gone_on_with(log: Path) -> None:
    banner = b"=" * 300 + b"\n"
    log.write_bytes(banner + b"one life\n")
    first = Follower(log)
    first.look()
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(banner + b"two and a longer one\n")
    second = Follower(log, cursor=first.cursor)
    assert second.look() == banner + b"two and a longer one\n"
    assert second.breaks == ["gap"]


def test_last_lines_that_come_while_the_next_file_is_found_are_not_lost(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    follower.look()
    old = log.with_name("server.log.1")
    log.rename(old)
    find = rotation.successor

    def meanwhile(*args: Any) -> Any:
        if not log.exists():
            add(old, b"two\n")
            add(log, b"three\n")
        return find(*args)

    monkeypatch.setattr(rotation, "successor", meanwhile)
    assert follower.look() + follower.look() == b"two\nthree\n"


def test_a_file_that_has_the_number_of_one_read_before_is_read(log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    follower.look()
    reused = log.with_name("server.log.1")
    add(reused, b"two\n")
    assert follower.tail.file is not None
    follower.tail.file.passed = ((tailfile.identity(reused.stat()), b"long ago"),)
    log.unlink()
    add(log, b"three\n")
    for second, path in enumerate((reused, log), 2**31):
        os.utime(path, (second, second))
    assert follower.look() == b"two\nthree\n"


def test_files_that_are_renamed_while_they_are_looked_for_are_found(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_bytes(b"one\n")
    first = Follower(log)
    first.look()
    add(log, b"two\n")
    open_file = tailfile.open_file
    names = [log, log.with_name("server.log.1"), log.with_name("server.log.2")]

    def meanwhile(path: str) -> Any:
        if not names[2].exists():
            for name, new in ((names[1], names[2]), (names[0], names[1])):
                if name.exists():
                    name.rename(new)
            add(log, b"later\n")
        return open_file(path)

    monkeypatch.setattr(rotation, "open_file", meanwhile)
    second = Follower(log, cursor=first.cursor)
    assert second.look().startswith(b"two\nlater\n")
    assert "gap" not in second.breaks


@pytest.mark.parametrize("how", ["rename", "rename within one tick", "copy and truncate"])
def test_random_cuts_and_rotations_lose_and_repeat_nothing(log: Path, how: str) -> None:
    chance = random.Random(7)
    log.write_bytes(b"begin\n")
    received = b""
    follower = Follower(log)
    follower.look()
    for number in range(400):
        add(log, b"%06d %s\n" % (number, b"x" * chance.randrange(80)))
        if chance.random() < 0.05:
            for old in (3, 2, 1):
                if (source := log.with_name(f"server.log.{old}")).exists():
                    source.rename(log.with_name(f"server.log.{old + 1}"))
            if how == "copy and truncate":
                shutil.copyfile(log, log.with_name("server.log.1"))
                os.truncate(log, 0)
            else:
                second = 1 if how == "rename within one tick" else number + 1
                os.utime(log, (second, second))
                log.rename(log.with_name("server.log.1"))
                log.write_bytes(b"")
        if chance.random() < 0.3:
            follower.look()
        if chance.random() < 0.05 and follower.logs:
            received += follower.text
            follower = Follower(log, cursor=follower.cursor)
    add(log, b"end\n")
    follower.look()
    received += follower.text
    lines = received.splitlines()
    assert [int(line[:6]) for line in lines[1:-1]] == list(range(400))


LIVES = {
    "renamed and made anew": "rotated",
    "renamed, made anew much later": "rotated",
    "copied and cut": "rotated",
    "copied over the last copy and cut": "rotated",
    "cut to nothing": "truncated",
    "cut, and as long again at once": "truncated",
    "cut, longer at once and beginning alike": "truncated",
    "replaced by another": "replaced",
    "deleted and made anew": "replaced",
}
BANNER = b"=" * 300 + b"\n"


def end_life(log: Path, how: str, follower: Follower) -> None:
    """The log ends and may begin again; what is unread then can still be read, unless it was cut away."""
    copy = log.with_name("server.log.1")
    if how.startswith("renamed"):
        log.rename(copy)
        if how.endswith("later"):
            follower.look()
    elif how.startswith("copied"):
        if "over" in how:
            log.rename(copy)
            shutil.copyfile(copy, log)  # a copy of the same age beside it
        shutil.copyfile(log, copy)
        os.truncate(log, 0)
    elif how.startswith("cut"):
        follower.look()  # what is cut away unread is nobody's to save
        os.truncate(log, 0)
    elif how.startswith("replaced"):
        follower.look()
        fresh = log.with_name("fresh")
        fresh.write_bytes(b"")
        fresh.replace(log)
    else:
        follower.look()
        log.unlink()


@pytest.mark.parametrize("how", LIVES)
def test_however_a_log_ends_and_begins_again_each_byte_comes_once_and_the_change_is_said(
    log: Path, how: str
) -> None:
    alike = BANNER if how.endswith("alike") else b""
    first = alike + b"".join(b"first %05d\n" % n for n in range(2000))
    log.write_bytes(first)
    follower = Follower(log)
    follower.look()
    late = b"".join(b"later %05d\n" % n for n in range(500))
    add(log, late)
    end_life(log, how, follower)
    longer = 2 if "longer" in how else 1
    second = alike + b"".join(b"again %05d\n" % n for n in range(2500 * longer))
    add(log, second)
    for _ in range(3):
        follower.look()
    assert len(follower.text) == len(first) + len(late) + len(second)
    assert follower.text == first + late + second
    assert follower.breaks == ["start", LIVES[how]]
    add(log, b"and on\n")
    assert follower.look() == b"and on\n"


@pytest.mark.parametrize("backlog", [0, 100, 8 << 20])
def test_the_hole_that_a_cut_leaves_before_a_server_that_does_not_append_is_not_read(
    log: Path, backlog: int
) -> None:
    with log.open("wb", buffering=0) as server:
        server.write(b"x" * 1_000_000 + b"\nfirst life\n")
        follower = Follower(log)
        follower.look()
        os.truncate(log, 0)
        server.write(b"second life\n")
        assert log.stat().st_size > 1_000_000
        assert follower.look() == b"second life\n"
        assert follower.breaks == ["start", "truncated"]
        server.write(b"goes on\n")
        assert follower.look() == b"goes on\n"
        newcomer = Follower(log, backlog=backlog)
        expected = b"" if not backlog else b"second life\ngoes on\n"
        assert newcomer.look() == expected
        again = Follower(log, cursor=follower.cursor)
        server.write(b"end\n")
        assert again.look() == b"end\n"


@pytest.mark.parametrize("away", [False, True])
def test_a_log_that_has_grown_too_far_ahead_goes_on_near_its_end_and_that_is_said(
    log: Path, away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specdash.agent.tail.TOO_FAR", 200_000)
    log.write_bytes(b"one\n")
    follower = Follower(log, backlog=100_000)
    follower.look()
    add(log, b"told while nobody could listen\n" * 6_000 + b"and on\n")
    assert follower.look().startswith(b"told")  # far, and not too far
    add(log, b"told while nobody could listen\n" * 20_000 + b"this moment\n")
    if away:
        follower = Follower(log, follower.cursor, backlog=100_000)
    seen = follower.look()
    assert 90_000 < len(seen) <= 100_000
    assert seen.startswith(b"told")
    assert seen.endswith(b"this moment\n")
    assert follower.breaks[-1] == "skipped"
    add(log, b"goes on\n")
    assert follower.look() == b"goes on\n"


def test_a_hole_in_the_midst_of_a_log_is_not_read(log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(log)
    follower.look()
    os.truncate(log, 1 << 30)
    add(log, b"after the hole\n")
    assert follower.look() == b"after the hole\n"
    assert follower.breaks == ["start", "skipped"]
