"""Conditions against pictures of a host: yes, no, or not to be told, each with what was seen."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.serverparts import Check, Rank
from specdash.monitor.state import HostState, Link
from specdash.profile.conditions import ConditionError, parse
from specdash.runbooks.holds import holds
from tests.tui import states

CAPTURE, SERVING, STALLED = states.capture(), states.serving(), states.stalled()
replace = msgspec.structs.replace
EXPLAINED = replace(SERVING, gpus=tuple(replace(gpu, orphan_mib=0) for gpu in SERVING.gpus))


def _so(text: str, state: HostState, wanted: str | None = None) -> tuple[bool | None, str]:
    told = holds(parse(text), state, wanted)
    return told.is_so, told.seen


@pytest.mark.parametrize(
    ("text", "state", "is_so", "seen"),
    [
        ("state == 'ready'", SERVING, True, "sglang:30000 is ready"),
        ("state == 'ready'", CAPTURE, False, "sglang:30000 is capturing (capture"),
        ("state != 'ready'", CAPTURE, True, "is capturing"),
        ("not state == 'ready'", CAPTURE, True, "is capturing"),
        ("phase == 'capture'", STALLED, True, "is capture"),
        ("state == 'stalled' or state == 'crashed'", STALLED, True, "is stalled"),
        ("state == 'ready' and gpu.orphan_mib == 0", CAPTURE, False, "is capturing"),
        ("servers == 1", SERVING, True, "1 server"),
        ("servers > 1", SERVING, False, "1 server"),
        ("gpu.used_mib < baseline", SERVING, False, "MiB in use"),
        ("gpu.used_mib > 100", SERVING, True, "8 GPUs: "),
        ("gpu.orphan_mib == 0", EXPLAINED, True, "8 GPUs: 0 MiB unexplained"),
    ],
)
def test_a_condition_is_so_or_not_with_what_was_seen(
    text: str, state: HostState, is_so: bool, seen: str
) -> None:
    told, words = _so(text, state)
    assert told is is_so, words
    assert seen in words


def test_an_idle_card_is_at_the_baseline() -> None:
    idle = tuple(replace(gpu, card=replace(gpu.card, used_mib=3), owners=()) for gpu in SERVING.gpus)
    assert _so("gpu.used_mib < baseline", replace(SERVING, gpus=idle))[0] is True


def test_what_cannot_be_told_is_neither_yes_nor_no() -> None:
    lost = replace(SERVING, link=Link(state="lost"))
    assert _so("state == 'ready'", lost) == (None, "the connection is lost")
    assert _so("not state == 'ready'", lost)[0] is None
    empty = replace(SERVING, servers=())
    assert _so("state == 'ready'", empty) == (None, "no server is seen")
    silent = replace(SERVING.gpus[0], card=replace(SERVING.gpus[0].card, used_mib=None, error="GPU is lost"))
    one_lost = replace(SERVING, gpus=(silent, *SERVING.gpus[1:]))
    assert _so("gpu.used_mib > 100", one_lost) == (None, "GPU 0: GPU is lost")
    # One known side decides for all, whatever the other is.
    assert _so("state == 'ready' or gpu.used_mib > 100", one_lost)[0] is True
    assert _so("state == 'crashed' and gpu.used_mib > 100", one_lost)[0] is False


def test_of_several_servers_one_must_be_named() -> None:
    other = replace(SERVING.servers[0], key="9:9", pid=9, name="vllm:8000", state="loading")
    two = replace(SERVING, servers=(*SERVING.servers, other))
    told, words = _so("state == 'ready'", two)
    assert told is None
    assert "say which one by --server" in words
    assert _so("state == 'ready'", two, "sglang:30000")[0] is True
    assert _so("state == 'loading'", two, "9")[0] is True


def _checked(*ends: int | None) -> HostState:
    server = replace(
        SERVING.servers[0],
        ranks=tuple(Rank(name=f"TP{n}", pid=n + 1, start=1, state="R") for n in range(3)),
        checks=tuple(
            Check(role="target", phase="capture", rank=f"TP{n}", begin_line=n, end_line=end)
            for n, end in enumerate(ends)
        ),
    )
    return replace(SERVING, servers=(server,))


def test_a_milestone_on_all_ranks_waits_for_the_last_of_them() -> None:
    text = "milestone capture end on all ranks"
    assert _so(text, _checked(5, 6, 7)) == (True, "capture ended on 3 ranks")
    told, words = _so(text, _checked(5, 6, None))
    assert (told, "TP2 has not" in words) == (False, True)
    silent = _so(text, _checked(5, 6))  # a rank that has said nothing has ended nothing
    assert (silent[0], "TP2 has not" in silent[1]) == (False, True)
    assert _so("milestone capture begin on all ranks", _checked(None, None, None))[0] is True
    assert _so("milestone capture end on TP1", _checked(None, 6, None))[0] is True
    assert _so("milestone weights end", _checked(1, 2, 3))[0] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("milestone captur end", "did you mean 'capture'"),
        ("milestone capture stop", "neither begin nor end"),
        ("milestone capture end on all", "ranks behind all is missing"),
        ("gpu.orphan_mib < baseline", "gpu.orphan_mib is a number"),
        ("mileston capture end", "did you mean 'milestone'"),
    ],
)
def test_a_condition_that_means_nothing_is_refused_with_the_nearest_word(text: str, words: str) -> None:
    with pytest.raises(ConditionError) as error:
        parse(text)
    assert words in error.value.message
