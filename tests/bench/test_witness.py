"""The host beside a run: what its cards and its queue did meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.bench.witness import Witness
from specdash.monitor.serverparts import Figures
from specdash.monitor.state import HostState, Owner
from tests.tui import pieces, states

OURS = Owner(pid=4243, mib=9000, label="TP0", server=pieces.KEY)


def _second(at: float, *, running: int = 4, **card: Any) -> HostState:
    state = states.serving()
    gpus = tuple(
        msgspec.structs.replace(
            gpu,
            card=msgspec.structs.replace(gpu.card, **card),
            owners=(Owner(pid=4243, mib=9000, label="TP0", server=pieces.KEY),),
        )
        for gpu in state.gpus
    )
    server = msgspec.structs.replace(
        state.servers[0], figures=Figures(at=at, running=running, waiting=0, kv_pct=3.0, accept_len=2.4)
    )
    return msgspec.structs.replace(state, gpus=gpus, gpus_at=at, servers=(server,))


def test_clocks_power_heat_and_throttling_of_the_run() -> None:
    witness = Witness(pieces.KEY)
    witness.look(_second(1, sm_mhz=1900, power_w=400.0, temp_c=60, throttle=()))
    witness.look(_second(2, sm_mhz=2000, power_w=600.0, temp_c=80, throttle=("hardware thermal",)))
    seen = witness.during
    assert seen.sm_mhz is not None
    assert seen.power_w is not None
    assert (seen.sm_mhz.low, seen.sm_mhz.mean, seen.sm_mhz.high) == (1900, 1950, 2000)
    assert (seen.power_w.mean, seen.samples) == (500, 2)
    assert seen.throttled == {"hardware thermal": 0.5}
    assert (seen.accept_length, seen.foreign) == (2.4, ())


def test_a_picture_without_a_new_sample_counts_nothing_twice() -> None:
    witness = Witness(pieces.KEY)
    for running in (1, 9, 9):
        witness.look(_second(1, running=running, sm_mhz=1900))
    seen = witness.during
    assert seen.samples == 1
    assert seen.running is not None
    assert seen.running.high == 1


def test_a_stranger_on_the_cards_is_named_and_a_display_server_is_not() -> None:
    state = _second(1)
    others = (Owner(pid=77, mib=4000, label="python3"), Owner(pid=5, mib=4, label="Xorg"))
    first = msgspec.structs.replace(state.gpus[0], owners=(*state.gpus[0].owners, *others))
    witness = Witness(pieces.KEY)
    witness.look(msgspec.structs.replace(state, gpus=(first, *state.gpus[1:])))
    assert witness.during.foreign == (77,)


def test_a_server_that_has_gone_shows_nothing() -> None:
    witness = Witness("1:1")
    witness.look(_second(1))
    assert witness.during.samples == 0


def test_seconds_in_which_the_link_was_lost_are_counted_as_unseen() -> None:
    def at(now: float, link: str, heard_at: float | None = None) -> HostState:
        state = states.serving()
        found = msgspec.structs.replace(state.link, state=link, heard_at=heard_at)
        return msgspec.structs.replace(state, now=now, link=found)

    witness = Witness(pieces.KEY)
    for now, link, heard_at in ((10, "live", None), (14, "lost", 11.0), (20, "connecting", 11.0)):
        witness.look(at(now, link, heard_at))
    assert witness.during.blind_s == 9
    witness.look(at(21, "live"))
    witness.look(at(30, "live"))
    assert witness.during.blind_s == 10
    witness.look(at(32, "lost", 31.0))
    assert witness.during.blind_s == 11


def test_more_requests_than_ours_can_be_are_somebody_elses() -> None:
    def seen(*running: int, ours: int | None = 4) -> Witness:
        witness = Witness(pieces.KEY, ours)
        for at, many in enumerate(running, 1):
            witness.look(_second(at, running=many))
        return witness

    shared = seen(0, 4, 6, 6, 5, 4)
    assert shared.crowd == "up to 6 requests at once, ours are 4 at most"
    assert shared.during.beyond == pytest.approx(0.6)
    assert seen(9, 4, 4, 4).crowd is None, "what was there before we began is none of it"
    assert seen(0, 6, 4, 4, 4).crowd is None, "one report alone may be a late gauge"
    assert seen(0, 9, 9, 9, ours=None).crowd is None, "a rate without a limit may have any number"
