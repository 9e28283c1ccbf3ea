from __future__ import annotations

from specdash.commands.deferred import DeferredSource
from specdash.errors import SpecdashError
from specdash.session.source import Source
from tests.tui import fakes, pieces, states


async def test_it_connects_until_it_runs_and_then_is_the_host() -> None:
    real = fakes.source(states.serving())
    told: list[int] = []
    deferred = DeferredSource("gpubox", lambda: real)
    source: Source = deferred
    undo = source.subscribe(lambda: told.append(1))
    assert source.state.link.state == "connecting"
    assert source.log(pieces.KEY) is None
    source.refresh()
    await source.run()
    assert source.state is real.state
    assert source.log(pieces.KEY) is real.logs[pieces.KEY]
    real.set(states.stalled())
    assert told == [1]
    source.acknowledge(f"server:{pieces.KEY}/stalled")
    assert real.acknowledged
    undo()
    await source.stop()
    assert real.stopped


def test_a_host_of_the_profile_has_the_same_name_before_and_after_it_is_connected() -> None:
    deferred = DeferredSource("box", lambda: fakes.source(states.serving()), shown="root@gpubox")
    assert (deferred.target, deferred.state.target) == ("box", "root@gpubox")


async def test_a_host_that_cannot_be_opened_is_refused_with_the_reason() -> None:
    def fail() -> Source:
        raise SpecdashError("no such key file", "name another with --identity")

    source = DeferredSource("gpubox", fail)
    await source.run()
    assert source.state.link.state == "refused"
    assert source.state.link.reason == "no such key file (name another with --identity)"


async def test_one_that_was_stopped_before_it_ran_never_opens() -> None:
    opened: list[int] = []

    def open_() -> Source:
        opened.append(1)
        return fakes.source(states.serving())

    source = DeferredSource("gpubox", open_)
    await source.stop()
    await source.run()
    assert not opened
