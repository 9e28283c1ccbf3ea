"""The loop of the load generator: who is woken, and who is not any more."""

from __future__ import annotations

import socket
from collections.abc import Callable

from specdash.agent.loadloop import Loop


def test_whoever_was_closed_in_the_same_round_is_not_woken() -> None:
    """A stop closes every connection, while others of the round still have something to read."""
    loop, woken = Loop(), []
    pairs = [socket.socketpair() for _ in range(3)]

    def wakes(number: int) -> Callable[[], None]:
        def wake() -> None:
            woken.append(number)
            loop.over = True
            for ours, _ in pairs:
                loop.forget(ours)
                ours.close()

        return wake

    for number, (ours, theirs) in enumerate(pairs):
        loop.watch(ours, 1, wakes(number))
        theirs.send(b"x")
    loop.run()
    assert len(woken) == 1
    for _, theirs in pairs:
        theirs.close()
