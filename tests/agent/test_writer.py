"""Frames leave at once from whichever thread has them, whole and in order; a slow reader holds nobody up."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from collections.abc import Iterator

import pytest

from specdash.agent.wire import Outbox
from specdash.agent.writer import Writer


class Link:
    """A pipe with an outbox at one end."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.outbox = Outbox()
        self.writer = Writer(self.outbox, self.writing)
        self.outbox.on_news = self.writer.flush

    def woken(self) -> bool:
        """The main loop was called for."""
        return bool(select.select([self.outbox.wake_fd], [], [], 0)[0])

    def came(self) -> bytes:
        """What has come by now."""
        data = b""
        while select.select([self.reading], [], [], 0)[0]:
            data += os.read(self.reading, 1 << 16)
        return data

    def close(self) -> None:
        for fd in (self.reading, self.writing):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.outbox.close()


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    yield made
    made.close()


def test_a_frame_leaves_at_once_and_wakes_nobody(link: Link) -> None:
    link.outbox.put({"n": 1}, "gpus")
    link.outbox.put_log(b'{"t":"log"}\n')
    assert link.came() == b'{"n":1}\n{"t":"log"}\n'
    assert not link.woken()


def test_while_the_other_side_is_slow_the_newest_sample_waits_and_the_main_loop_is_called_once(
    link: Link,
) -> None:
    big = "x" * (1 << 20)
    link.outbox.put({"big": big})
    assert (link.writer.full, link.woken()) == (True, True)
    link.outbox.drain_wake()
    for n in range(100):
        link.outbox.put({"n": n}, "gpus")
    assert not link.woken()
    text = b""
    while link.writer.full:
        text += link.came()
        link.writer.resume()
        link.outbox.drain_wake()
    lines = (text + link.came()).splitlines()
    assert json.loads(lines[0]) == {"big": big}
    assert [json.loads(line) for line in lines[1:]] == [{"n": 99}]
    link.outbox.put({"n": 100})
    assert link.came() == b'{"n":100}\n', "afterwards all is as before"


def test_where_nobody_reads_any_more_the_main_loop_hears_of_it(link: Link) -> None:
    os.close(link.reading)
    link.outbox.put({"n": 1})
    assert (link.writer.ended, link.woken()) == (True, True)


def test_frames_of_many_threads_leave_whole_and_none_is_left_behind(link: Link) -> None:
    def talk(who: int) -> None:
        for n in range(300):
            link.outbox.put({"who": who, "n": n, "text": "y" * 40})

    text = b""
    threads = [threading.Thread(target=talk, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or link.outbox.waiting:
        text += link.came()
        if link.writer.full:
            link.writer.resume()
    for thread in threads:
        thread.join()
    told = [json.loads(line) for line in (text + link.came()).splitlines()]
    assert len(told) == 1800
    for who in range(6):
        assert [frame["n"] for frame in told if frame["who"] == who] == list(range(300))
