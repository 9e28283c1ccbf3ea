"""The generator on the host, heard through a session's errands and frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from specdash.bench.events import End
from specdash.bench.plan import Workload
from specdash.errors import SpecdashError
from specdash.measuring.onhost import HostGenerator
from specdash.monitor.frames import Bench
from specdash.session.following import Following

BEGIN = {"event": "begin", "at": 5.0}
END = {"event": "end", "t": 1.0, "done": 3}
LOAD = Workload(url="http://127.0.0.1:1")


class MadeUpGround:
    """A session whose host answers as it is told."""

    def __init__(self, refuse: str | None = None) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.refuse = refuse
        self.benches = Following(self._sent)
        self.when_followed: Callable[[str], None] = lambda run: None

    def _sent(self, request: Mapping[str, Any]) -> bool:
        asyncio.get_running_loop().call_soon(self.when_followed, request["run"])
        return True

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        self.asked.append(request)
        if self.refuse and request["r"] == "bench":
            raise SpecdashError(self.refuse)
        if request["r"] == "bench_stop":
            self.say(request["run"], {**END, "cancelled": True}, offset=90, over=True)
        return {"pid": 1}

    def say(self, run: str, *events: Any, offset: int, over: bool = False) -> None:
        self.benches.take(
            Bench(at=1.0, run=run, offset=offset, events=events, over=over, exit=1 if over else None)
        )


async def test_a_run_is_heard_to_its_end() -> None:
    ground = MadeUpGround()
    ground.when_followed = lambda run: ground.say(run, BEGIN, END, offset=50, over=True)
    said = [event async for event in HostGenerator(ground, "7:1").run(LOAD)]
    assert isinstance(said[-1], End)
    assert said[-1].done == 3
    assert (ground.asked[0]["server"], ground.asked[0]["workload"]["url"]) == ("7:1", LOAD.url)
    assert [request["r"] for request in ground.asked] == ["bench"]


async def test_stopping_asks_once_and_hears_what_had_ended() -> None:
    ground = MadeUpGround()
    ground.when_followed = lambda run: ground.say(run, BEGIN, offset=10)
    generator = HostGenerator(ground)
    said = []
    async for event in generator.run(LOAD):
        said.append(event)
        generator.stop()
        generator.stop()
    assert isinstance(said[-1], End)
    assert said[-1].cancelled
    assert [request["r"] for request in ground.asked] == ["bench", "bench_stop"]


async def test_whoever_stops_listening_leaves_nothing_running() -> None:
    ground = MadeUpGround()
    ground.when_followed = lambda run: ground.say(run, BEGIN, offset=10)
    run = HostGenerator(ground).run(LOAD)
    await anext(run)
    await run.aclose()  # type: ignore[attr-defined]
    assert [request["r"] for request in ground.asked] == ["bench", "bench_stop"]


async def test_a_generator_that_dies_is_told_with_its_last_words() -> None:
    ground = MadeUpGround()
    words = {"event": "output", "t": 0.0, "line": "MemoryError"}
    ground.when_followed = lambda run: ground.say(run, BEGIN, words, offset=50, over=True)
    with pytest.raises(SpecdashError, match=r"status 1\): MemoryError"):
        _ = [event async for event in HostGenerator(ground).run(LOAD)]


async def test_a_host_that_refuses_is_heard_in_its_own_words() -> None:
    with pytest.raises(SpecdashError, match="watch-only"):
        _ = [event async for event in HostGenerator(MadeUpGround("watch-only")).run(LOAD)]
