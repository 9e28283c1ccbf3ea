"""What a plain shell says, read: values, and what is no value."""

from __future__ import annotations

import base64
import re

import pytest

from specdash.monitor import frames, samples
from specdash.remote.shellread import Table, cards, details, greeting, looks, machine, stats
from specdash.remote.shelltail import ShellTail

GREETING = [b"box", b"5.15.0", b"b-1", b"1000", b"op", b"1700000000", b"500.25 900.0", b"8"]
CARD = "0, GPU-a, 0000:01:00.0, 97887, 77824, 99, 120.5, 600.00, 55, 1980, 2100, 580.1, NVIDIA H200, 141 GB"


def stat(pid: int, ppid: int, start: int, comm: str = "x", flags: int = 0) -> bytes:
    ids = f"{pid} ({comm}) S {ppid} {pid} {pid} 0 -1 {flags}"
    return f"{ids} 0 0 0 0 150 50 0 0 20 0 3 0 {start} 0 1024".encode()


def look(pid: int, *argv: str, uid: int = 0) -> list[bytes]:
    packed = base64.b64encode("\0".join(argv).encode())
    return [b"uid %d /proc/%d" % (uid, pid), b"argv %d" % pid, packed[:20], packed[20:]]


def more(pid: int, group: str = "/system.slice/x.service") -> list[bytes]:
    return [b"more %d" % pid, b"out /var/log/x.log", b"err ", f"cgroup 0::{group}".encode()]


def test_a_greeting_names_the_host_its_boot_and_the_programs_it_lacks() -> None:
    told = greeting([*GREETING, b"no base64", b"no readlink"], "9.9")
    assert (told.hello.host, told.hello.user, told.hello.cpus, told.hello.python) == ("box", "op", 8, "")
    assert told.booted == 1700000000 - 500.25
    assert told.lacks == ("base64",), "without readlink only the log's place is not found by itself"


def test_a_shell_that_says_something_else_is_no_greeting() -> None:
    with pytest.raises(ValueError, match="sorry"):
        greeting([b"sorry"], "9.9")


def test_a_card_has_its_values_and_a_name_with_a_comma() -> None:
    (card,), driver = cards([CARD], ["GPU-a, 4242, 70000", "GPU-b, 1, 1"])
    assert (card.total_mib, card.used_mib, card.power_w, card.temp_c) == (97887, 77824, 120.5, 55)
    assert (card.name, driver) == ("NVIDIA H200, 141 GB", "580.1")
    assert card.processes == (samples.CardProcess(4242, 70000),)


@pytest.mark.parametrize("word", ["[N/A]", "[Not Supported]", "[Insufficient Permissions]", "ERR!"])
def test_what_the_driver_does_not_tell_is_missing_and_never_0(word: str) -> None:
    (card,), _ = cards([CARD.replace("77824", word)], [])
    assert card.used_mib is None
    assert card.missing == ("used_mib",)


def test_processes_that_could_not_be_asked_for_are_unknown_not_none() -> None:
    (card,), _ = cards([CARD], None)
    assert card.processes is None


def test_owners_whose_memory_is_not_told_keep_their_pid() -> None:
    (card,), _ = cards([CARD], ["GPU-a, 4242, [N/A]"])
    assert card.processes == (samples.CardProcess(4242, None),)


def test_servers_their_descendants_and_owners_are_listed_and_nobody_else() -> None:
    table = Table(1000.0, [re.compile("launch_server")])
    now = stats(
        [
            stat(10, 1, 500),
            stat(11, 10, 600),
            stat(12, 1, 700),
            stat(13, 1, 800),
            stat(2, 0, 0, flags=0x200000),
        ]
    )
    assert sorted(table.strangers(now, at=2000.0)) == [10, 11, 12, 13]
    seen = looks([*look(10, "python", "-m", "sglang.launch_server", "--api-key", "s3cret"), *look(12, "vi")])
    assert table.matching(now, seen) == [10]
    details(more(10), seen)
    table.learn(now, seen)
    rows = table.rows(now, owners=[13])
    assert [row.pid for row in rows] == [10, 11, 13]
    assert (rows[0].started, rows[0].cpu_s, rows[0].out) == (1005.0, 2.0, "/var/log/x.log")
    assert rows[0].cgroup == "/system.slice/x.service"
    assert "s3cret" not in " ".join(rows[0].argv)


def test_only_the_new_and_the_young_are_looked_at_again() -> None:
    table = Table(1000.0, [re.compile("serve")])
    now = stats([stat(10, 1, 0), stat(11, 1, 100 * 100)])
    table.learn(now, looks([*look(10, "serve"), *look(11, "sh")]))
    assert table.strangers(now, at=1000.0 + 130) == [11], "its title may still change"
    assert table.strangers(now, at=1000.0 + 500) == []
    assert table.strangers(now, at=1000.0 + 500, again=True) == [10]
    assert table.strangers(stats([stat(10, 1, 77)]), at=1000.0 + 500) == [10], "another process with that pid"


def test_a_dead_process_keeps_the_title_it_had() -> None:
    table = Table(0.0, [re.compile("serve")])
    now = stats([stat(10, 1, 0)])
    table.learn(now, looks(look(10, "serve")))
    table.learn(now, looks(look(10)))
    assert table.rows(now, [])[0].argv == ("serve",)


def test_an_odd_name_spoils_no_other_line() -> None:
    assert list(stats([b"9 (a", b"b) S 1 9", stat(10, 1, 5, comm="x) (y")])) == [10]


def test_a_process_of_a_container_says_of_which() -> None:
    table = Table(0.0, [re.compile("serve")])
    now = stats([stat(10, 1, 0)])
    seen = looks(look(10, "serve"))
    details(more(10, f"/system.slice/docker-3f2a{'0' * 60}.scope"), seen)
    table.learn(now, seen)
    assert table.rows(now, [])[0].container == "docker:3f2a00000000"


def test_who_started_a_process_is_told_and_who_took_it_in_is_not() -> None:
    table = Table(0.0, [re.compile("VLLM::")])
    now = stats([stat(1, 0, 0, comm="init"), stat(10, 1, 5, comm="python3"), stat(11, 10, 6), stat(12, 1, 7)])
    now[11].sid = now[10].sid
    table.learn(now, looks([*look(11, "VLLM::EngineCore"), *look(12, "VLLM::EngineCore")]))
    assert [(row.pid, row.maker) for row in table.rows(now, [])] == [(11, "python3"), (12, None)]


def test_memory_is_what_the_kernel_calls_available() -> None:
    seen = machine([b"MemTotal:  2097152 kB", b"MemAvailable:  1048576 kB", b"load 0.5 0.4 0.3 1/2 3"], 7.0)
    assert (seen.ram_used_mib, seen.ram_total_mib, seen.load_1m) == (1024, 2048, 0.5)
    assert machine([], 7.0).ram_used_mib is None


def test_a_log_goes_on_where_an_earlier_connection_was() -> None:
    tail = ShellTail("/l", {"file": "1:2", "offset": 6}, 100)
    assert tail.request().startswith("log 6 ")
    (frame,) = tail.take([b"1:2 10 5", base64.b64encode(b"two\n")], 9.0)
    assert isinstance(frame, frames.Log)
    assert (frame.raw, frame.offset, frame.break_) == (b"two\n", 6, None)


def test_a_log_that_cannot_be_read_is_said_once_in_ten_seconds() -> None:
    tail = ShellTail("/l", None, 100)
    said = [list(tail.take([b"error permission denied"], at)) for at in (0.0, 1.0, 10.5)]
    assert [len(frame) for frame in said] == [1, 0, 1]


def test_a_log_that_has_grown_too_far_ahead_goes_on_near_its_end_and_that_is_said() -> None:
    tail = ShellTail("/l", {"file": "1:2", "offset": 6}, 100)
    size = 1 << 30
    assert list(tail.take([b"1:2 %d 5" % size, base64.b64encode(b"long ago\n")], 9.0)) == []
    assert tail.more
    assert tail.request().startswith(f"log {size - 100} ")
    answer = [b"1:2 %d 5" % size, base64.b64encode(b"half a line\n" + b"x" * 87 + b"\n")]
    (frame,) = tail.take(answer, 9.5)
    assert isinstance(frame, frames.Log)
    assert (frame.raw, frame.break_) == (b"x" * 87 + b"\n", "skipped")
