"""The generator on the host, heard through a session's errands and frames."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specdash.bench.events import End
from specdash.bench.plan import Workload
from specdash.errors import RequestError, SpecdashError
from specdash.measuring import onhost
from specdash.measuring.leftover import Leftovers
from specdash.measuring.onhost import HostGenerator
from specdash.monitor.frames import Bench, Reply
from specdash.session.following import Following

BEGIN = {"event": "begin", "at": 5.0}
END = {"event": "end", "t": 1.0, "done": 3}
LOAD = Workload(url="http://127.0.0.1:1")


def noted_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


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


async def test_a_run_that_the_host_knows_no_more_ends_in_its_words() -> None:
    ground = MadeUpGround()
    ground.when_followed = lambda run: ground.benches.answer(
        Reply(at=1.0, id=f"follow-{run}", ok=False, error="the host was restarted")
    )
    with pytest.raises(SpecdashError, match="the run at work is lost: the host was restarted"):
        _ = [event async for event in HostGenerator(ground).run(LOAD)]


async def test_what_was_cut_off_earlier_is_ended_first(tmp_path: Path) -> None:
    left, ground = Leftovers("gpubox", tmp_path), MadeUpGround()
    (tmp_path / "old-run.json").write_text(json.dumps({"target": "gpubox", "pid": 2**22 + 1}))
    noted: list[bool] = []

    def followed(run: str) -> None:
        noted.append((tmp_path / f"{run}.json").exists())
        ground.say(run, BEGIN, END, offset=50, over=True)

    ground.when_followed = followed
    _ = [event async for event in HostGenerator(ground, "7:1", left).run(LOAD)]
    assert (ground.asked[0]["r"], ground.asked[0]["run"]) == ("bench_stop", "old-run")
    assert noted == [True], "it is known before it can be cut off"
    assert noted_in(tmp_path) == []


async def test_whoever_leaves_a_lost_link_waits_for_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onhost, "END_S", 0.01)

    class Mute(MadeUpGround):
        async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
            if request["r"] == "bench_stop":
                await asyncio.Event().wait()
            return await super().ask(request, token=token)

    ground = Mute()
    ground.when_followed = lambda run: ground.say(run, BEGIN, offset=10)
    run = HostGenerator(ground, None, Leftovers("gpubox", tmp_path)).run(LOAD)
    await anext(run)
    await run.aclose()  # type: ignore[attr-defined]
    assert len(noted_in(tmp_path)) == 1, "whoever measures next ends it"


class Slow(MadeUpGround):
    """It takes a while to begin a run, and until then knows of none."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_to_begin, self.begins = asyncio.Event(), asyncio.Event()
        self.begun = False

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        if request["r"] == "bench":
            self.asked_to_begin.set()
            await self.begins.wait()
            self.begun = True
        elif not self.begun:
            raise RequestError("no such run on this host")
        return await super().ask(request, token=token)


async def test_who_stops_before_it_has_begun_does_not_load_the_server_all_the_same() -> None:
    ground = Slow()
    ground.when_followed = lambda run: ground.say(run, BEGIN, offset=10)
    generator = HostGenerator(ground)
    heard = asyncio.ensure_future(_all(generator))
    await ground.asked_to_begin.wait()
    generator.stop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ground.begins.set()
    events = await asyncio.wait_for(heard, 60)
    assert isinstance(events[-1], End)
    assert events[-1].cancelled


async def test_who_leaves_before_it_is_known_to_have_begun_leaves_word_of_it(tmp_path: Path) -> None:
    ground = Slow()
    heard = asyncio.ensure_future(_all(HostGenerator(ground, None, Leftovers("gpubox", tmp_path))))
    await ground.asked_to_begin.wait()
    heard.cancel()
    with pytest.raises(asyncio.CancelledError):
        await heard
    assert len(noted_in(tmp_path)) == 1, "whoever measures next ends it"


async def test_what_was_refused_is_not_taken_for_a_load_that_was_left(tmp_path: Path) -> None:
    with pytest.raises(SpecdashError, match="no room"):
        await _all(HostGenerator(MadeUpGround("no room"), None, Leftovers("gpubox", tmp_path)))
    assert noted_in(tmp_path) == []


async def _all(generator: HostGenerator) -> list[Any]:
    return [event async for event in generator.run(LOAD)]
