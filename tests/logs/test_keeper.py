"""What the screens are given of a log while it comes."""

from __future__ import annotations

from typing import Any

import msgspec

from specdash.intake.rules import default_rules
from specdash.logs.buffer import LogBuffer
from specdash.logs.keeper import LogKeeper
from specdash.monitor.frames import Glimpse, Log, Processes
from specdash.monitor.observe import start
from tests.monitor.frames_of import hello, process, run

PATH = "/var/log/server.log"


def log(text: str, offset: int, size: int, **fields: Any) -> Log:
    return Log(at=100.0, path=PATH, file="1:2", offset=offset, size=size, text=text, **fields)


def keep(keeper: LogKeeper, *frames: Log) -> None:
    memory = start("box", default_rules())
    for frame in frames:
        keeper.keep(frame, memory, memory)


def seen(keeper: LogKeeper) -> list[str]:
    buffer = keeper.at(PATH)
    assert isinstance(buffer, LogBuffer)
    return [buffer.text(line) for line in range(1, buffer.lines + 1)]


def test_the_last_lines_are_there_until_those_before_them_have_come_and_then_all_once() -> None:
    keeper = LogKeeper()
    keeper.open(PATH)
    keeper.glimpse(Glimpse(at=100.0, path=PATH, size=12, text="c\nd\n"))
    assert seen(keeper) == ["c", "d"]
    buffer = keeper.at(PATH)
    assert buffer is not None
    assert not buffer.whole, "their numbers are not those of the log"
    keep(keeper, log("a\nb\n", 4, 12, break_="start"))
    assert seen(keeper) == ["c", "d"]
    keep(keeper, log("c\nd\n", 8, 14))
    assert seen(keeper) == ["a", "b", "c", "d"]
    buffer = keeper.at(PATH)
    assert buffer is not None
    assert buffer.whole
    keep(keeper, log("e\n", 12, 14))
    assert seen(keeper) == ["a", "b", "c", "d", "e"]


def test_a_file_that_is_cut_while_its_backlog_comes_ends_the_glimpse() -> None:
    keeper = LogKeeper()
    keeper.glimpse(Glimpse(at=100.0, path=PATH, size=1000, text="z\n"))
    keep(keeper, log("a\n", 0, 1000, break_="start"), log("new\n", 0, 4, break_="truncated"))
    assert seen(keeper) == ["a", "new"]
    keeper.forget(PATH)
    assert keeper.at(PATH) is None


def test_the_rule_of_the_boot_stands_above_the_banner_and_not_in_its_midst() -> None:
    prefix = "(APIServer pid=7) INFO 11-30 05:11:35 [api_utils.py:347] "
    banner = (
        "", "       █     █     █▄   ▄█", " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0",
        "  █▄█▀ █     █     █     █  model   /models/tiny", "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀", "",
    )  # fmt: skip
    text = "a line of a library before it\n" + "".join(f"{prefix}{line}\n" for line in banner)
    frame = log(text, 0, len(text.encode()), break_="start")
    table = Processes(at=99.0, list=(process(100, 1, "vllm", "serve", "m", out=PATH, err=PATH),))
    before = run(hello(98.0), table)
    keeper = LogKeeper()
    keeper.keep(frame, before, run(frame, memory=before))
    buffer = keeper.at(PATH)
    assert buffer is not None
    assert [(line, text) for line, _, _, text in buffer.rules] == [(2, "boot")]


CRY = "[2026-11-02 01:00:00] Traceback (most recent call last):\n[2026-11-02 01:00:00] WARNING: it is late\n"


def test_what_an_earlier_process_cried_into_the_same_file_is_parted_from_the_next_and_not_counted() -> None:
    keeper = LogKeeper()
    frame = log("up\n" + CRY, 0, len("up\n" + CRY), break_="start")
    old = process(100, 1, "python", "-m", "sglang.launch_server", out=PATH, err=PATH)
    before = run(hello(98.0), Processes(at=99.0, list=(old,)))
    after = run(frame, memory=before)
    keeper.keep(frame, before, after)
    buffer = keeper.of(after, after.servers[0].key)
    assert buffer is not None
    assert (buffer.errors, buffer.warnings, buffer.earlier_errors) == (1, 1, 0)
    new = process(200, 1, "python", "-m", "sglang.launch_server", out=PATH, err=PATH, start=200)
    again = run(Processes(at=110.0, list=(new,)), memory=after)
    assert keeper.of(again, again.servers[0].key) is buffer
    assert [(line, text) for line, _, _, text in buffer.rules] == [(4, "process 200 writes from here on")]
    assert (buffer.errors, buffer.warnings, buffer.earlier_errors) == (0, 0, 1)
    more = log("WARNING: a flag is old\n" + CRY, len("up\n" + CRY), 999)
    keeper.keep(more, again, run(more, memory=again))
    assert (buffer.errors, buffer.warnings, buffer.begun) == (1, 2, 4)
    keeper.of(again, again.servers[0].key)
    assert len(buffer.rules) == 1, "once"


def test_a_process_that_is_seen_later_than_its_first_words_is_parted_before_them() -> None:
    keeper = LogKeeper()
    frame = log(CRY, 0, len(CRY), break_="start")
    old = process(100, 1, "python", "-m", "sglang.launch_server", out=PATH, err=PATH)
    before = run(hello(98.0), Processes(at=99.0, list=(old,)))
    after = run(frame, memory=before)
    keeper.keep(frame, before, after)
    words = msgspec.structs.replace(log("its first\nand more\n", len(CRY), len(CRY) + 19), at=111.0)
    early = run(words, memory=after)
    keeper.keep(words, after, early)
    new = process(
        200, 1, "python", "-m", "sglang.launch_server", out=PATH, err=PATH, start=200, started=110.5
    )
    again = run(Processes(at=112.0, list=(new,)), memory=early)
    buffer = keeper.of(again, again.servers[0].key)
    assert buffer is not None
    assert [(line, text) for line, _, _, text in buffer.rules] == [(3, "process 200 writes from here on")]


def test_errors_that_fell_out_of_memory_are_still_told_apart() -> None:
    buffer = LogBuffer(budget=1000)
    for number in range(40_000):
        buffer.append(b"ERROR one\nthen nothing of note\n" if number < 100 else b"a quiet line of a log\n")
    assert buffer.first_line > 200
    buffer.begin(buffer.lines + 1)
    buffer.append(b"ERROR two\n")
    assert (buffer.errors, buffer.earlier_errors) == (1, 100)
