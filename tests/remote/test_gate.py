import pytest

from specdash.monitor import frames
from specdash.remote.gate import Gate
from specdash.remote.transport import Lines

HELLO = (
    b'{"t":"hello","at":1,"proto":1,"specdash":"0","host":"h","boot":"b","pid":1,"uid":0,"user":"u",'
    b'"python":"3"}'
)


def greeted() -> Gate:
    gate = Gate()
    assert isinstance(gate.take(HELLO), frames.Hello)
    return gate


def test_frames_of_the_agent_come_in() -> None:
    assert isinstance(greeted().take(b'{"t":"beat","at":2,"n":1}'), frames.Beat)


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"garbage", b"\xff\xfe", b"null", b"[]", b'{"t":"beat"}', b'{"t":"nonsense","at":1}'),
        *(
            b'{"at":1,"n":1}',
            b'{"t":"beat","at":"soon","n":1}',
            b"[" * 100_000,
            b'{"t":"beat","at":1e999,"n":1}',
            b'{"t":"beat","at":1e17,"n":1}',
            b'{"t":"beat","at":-1,"n":1}',
            b'{"t":"beat","at":1,"n":1e308}',
            b'{"t":"beat","at":1,"n":18446744073709551616}',
            b'{"t":"gpus","at":1,"cards":[{"index":0,"used_mib":%d}]}' % 10**30,
            b'{"t":"gpus","at":1,"cards":[{"index":0,"power_w":1e308}]}',
            b'{"t":"machine","at":1,"load_1m":NaN}',
        ),
    ],
)
def test_what_is_no_frame_is_counted_and_never_raises(line: bytes) -> None:
    gate = greeted()
    assert gate.take(line) is None
    assert gate.refused == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":"link","at":1,"state":"live"}',
        b'{"t":"tick","at":1}',
        b'{"t":"ending","at":1,"server":"1:1"}',
        HELLO,
    ],
)
def test_a_host_cannot_say_what_only_this_side_says_nor_greet_twice(line: bytes) -> None:
    gate = greeted()
    assert gate.take(line) is None
    assert "no place here" in gate.last


def test_nothing_comes_in_before_the_hello() -> None:
    gate = Gate()
    assert gate.take(b'{"t":"beat","at":2,"n":1}') is None
    assert not gate.greeted


def test_a_flood_of_bad_lines_is_told_seldom_and_without_its_escape_codes() -> None:
    gate = greeted()
    told = []
    for _ in range(1000):
        gate.take(b"\x1b[2Jboo")
        told.append(gate.complaint())
    assert [text for text in told if text] == [
        f"{n} unreadable from the host, last: boo" for n in (1, 10, 100, 1000)
    ]


def test_lines_are_put_together_however_they_were_cut() -> None:
    text = b"one\ntwo\n\nthree\nrest"
    for size in range(1, len(text) + 1):
        lines = Lines()
        got = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]
        assert got == [b"one", b"two", b"", b"three"]


def test_an_overlong_line_is_dropped_and_the_next_one_read() -> None:
    lines = Lines(limit=10)
    assert lines.feed(b"x" * 8) == []
    assert lines.feed(b"x" * 8) == []
    assert lines.feed(b"xx\nnext\n" + b"y" * 11 + b"\n" + b"z" * 10 + b"\n") == [b"next", b"z" * 10]
    assert (lines.take_dropped(), lines.take_dropped()) == (2, 0)
