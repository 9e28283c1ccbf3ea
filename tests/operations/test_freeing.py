"""Cards are watched until each is clean: what is said meanwhile."""

from __future__ import annotations

import msgspec
import pytest

from specdash.operations.freeing import Watch, limit, says
from tests.monitor.frames_of import gpus, hello, picture


def test_a_card_that_is_clean_at_the_first_look_is_not_said_to_be_freeing_nothing() -> None:
    watch = Watch(cards=())
    falling = picture(hello(), gpus(1.0, 0.0, 40.0, owned=False))
    assert watch.look(falling, 10.0) == ("freeing", "still freeing: 40.0 GiB on GPU 1")
    once = picture(hello(), gpus(2.0, 0.0, 0.0, owned=False))
    assert watch.look(once, 11.0) == ("freeing", "GPU 1 clean at the first look, a second one follows")
    twice = picture(hello(), gpus(3.0, 0.0, 0.0, owned=False))
    assert watch.look(twice, 12.0) == ("clean", "GPU 0, 1 clean: at most 0 MiB in use, no owner")


@pytest.mark.parametrize(
    ("idle", "words"),
    [
        ((None, None), "at most 192 MiB in use (64 idle, assumed, + 128 spare)"),
        ((4, 4), "at most 132 MiB in use (4 idle, as seen, + 128 spare)"),
        ((4, None), "at most 132 to 192 MiB in use (what each shows idle + 128 spare)"),
    ],
)
def test_the_limit_of_a_clean_card_says_what_it_depends_on(
    idle: tuple[int | None, int | None], words: str
) -> None:
    cards = picture(hello(), gpus(1.0, 0.0, 0.0, owned=False)).gpus
    seen = [msgspec.structs.replace(gpu, baseline_mib=mib) for gpu, mib in zip(cards, idle, strict=True)]
    assert limit(seen) == words


def test_where_every_process_is_seen_who_is_not_has_ended_and_elsewhere_may_be_outside() -> None:
    whole, inside = hello(), hello(container="docker", host_pids=False)
    told = {}
    for name, host in (("whole", whole), ("inside", inside)):
        state = picture(host, gpus(1.0, 0.0, 76.0))
        told[name] = says(state.gpus[1], state)
    assert told["whole"].endswith("for pid 103, which has ended: `clean` finds and ends what keeps it")
    assert "for pid 103, which is not in this process table" in told["inside"]
    assert "outside this container" in told["inside"]
