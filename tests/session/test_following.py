"""Listening to a run on the host over several links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specdash.intake.door import admit
from specdash.monitor.frames import Bench, Reply
from specdash.session.following import Following


def frame(offset: int, *events: Any, over: bool = False) -> Bench:
    return Bench(at=1.0, run="run-1", offset=offset, events=events, over=over)


def listening() -> tuple[Following, list[Mapping[str, Any]], list[Bench]]:
    asked: list[Mapping[str, Any]] = []
    heard: list[Bench] = []

    def send(request: Mapping[str, Any]) -> bool:
        asked.append(request)
        return True

    following = Following(send)
    following.follow("run-1", heard.append)
    return following, asked, heard


def test_a_new_agent_goes_on_where_the_last_one_was() -> None:
    following, asked, heard = listening()
    following.take(frame(100, {"event": "tick"}))
    following.again()
    assert [(request["r"], request["offset"]) for request in asked] == [
        ("bench_follow", 0),
        ("bench_follow", 100),
    ]
    following.take(frame(100, {"event": "tick"}))
    following.take(frame(160, {"event": "end"}))
    assert [one.offset for one in heard] == [100, 160]


def test_the_end_is_heard_although_nothing_came_with_it() -> None:
    following, _, heard = listening()
    following.take(frame(100, {}))
    following.take(frame(100, over=True))
    assert [one.over for one in heard] == [False, True]


def test_nobody_hears_what_nobody_listens_to() -> None:
    following, asked, heard = listening()
    following.follow("run-2", heard.append)()
    following.take(Bench(at=1.0, run="run-2", offset=5))
    following.again()
    assert not heard
    assert [request["run"] for request in asked] == ["run-1", "run-2", "run-1"]


def test_what_a_run_says_passes_the_door_and_a_page_of_counters_keeps_its_lines() -> None:
    page = 'vllm:generation_tokens_total{engine="0"} 12.0\nvllm:prompt_tokens_total{engine="0"} 7.0'
    said = admit(
        frame(9, {"event": "output", "line": "\x1b[31mred\x07"}, {"event": "counters", "text": page})
    )
    assert isinstance(said, Bench)
    assert said.events[0]["line"] == "red"
    assert said.events[1]["text"] == page


def test_a_host_that_knows_the_run_no_more_is_heard_and_a_yes_is_not() -> None:
    following, asked, _ = listening()
    refused: list[str] = []
    following.follow("run-2", lambda frame: None, refused.append)
    number = asked[-1]["id"]
    following.answer(Reply(at=1.0, id=number, ok=True))
    following.answer(Reply(at=1.0, id="run-2", ok=False, error="of something else"))
    assert not refused
    following.answer(Reply(at=1.0, id=number, ok=False, error="no such run on this host"))
    assert refused == ["no such run on this host"]
