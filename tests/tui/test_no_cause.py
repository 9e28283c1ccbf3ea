"""A server that died without a word: what its log and the kernel's tell of that, and no more."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import HostState
from tests.tui import states
from tests.tui.words import panel

REPLACE = msgspec.structs.replace


def died(**server: object) -> HostState:
    state = states.crashed()
    return REPLACE(state, servers=(REPLACE(state.servers[0], diagnoses=(), **{"log_lines": 9, **server}),))


def words(state: HostState) -> str:
    return " ".join(panel(state, 116).split())


def test_an_end_without_a_word_is_said_to_look_like_sigkill_and_what_the_kernel_says_of_that() -> None:
    told = words(died())
    assert "The log names no cause that is known here. SIGKILL leaves none" in told
    assert "what is kept of the kernel's log names no OOM kill of it." in told


def test_where_the_kernels_log_cannot_be_read_nothing_is_said_of_its_words() -> None:
    told = words(REPLACE(died(), kernel_denied="it needs root"))
    assert "the kernel's log, which would name the OOM killer, cannot be read (it needs root)." in told
    assert "no OOM kill" not in told


def test_where_its_own_log_was_not_read_its_silence_tells_nothing() -> None:
    assert "SIGKILL" not in words(died(log=None))
    assert "SIGKILL" not in words(died(log_lines=0))
