"""Cards are watched until each is clean: what is said meanwhile."""

from __future__ import annotations

from specdash.operations.freeing import Watch
from tests.monitor.frames_of import gpus, hello, picture


def test_a_card_that_is_clean_at_the_first_look_is_not_said_to_be_freeing_nothing() -> None:
    watch = Watch(cards=())
    falling = picture(hello(), gpus(1.0, 0.0, 40.0, owned=False))
    assert watch.look(falling, 10.0) == ("freeing", "still freeing: GPU 1 40.0 GiB")
    once = picture(hello(), gpus(2.0, 0.0, 0.0, owned=False))
    assert watch.look(once, 11.0) == ("freeing", "GPU 1 clean at the first look, a second one follows")
    twice = picture(hello(), gpus(3.0, 0.0, 0.0, owned=False))
    assert watch.look(twice, 12.0) == ("clean", "GPU 0, 1 clean: at most 0 MiB in use, no owner")
