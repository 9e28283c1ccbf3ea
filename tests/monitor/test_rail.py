"""The phases of a start as they are shown: what comes, what is over, and what nobody saw."""

from __future__ import annotations

import msgspec

from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH
from tests.monitor.frames_of import COMMAND, LOG, hello, http, log, only_server, process, processes, run
from tests.monitor.good_start import ARGS, CAPTURE, DIST, LOADED, READY, WEIGHTS
from tests.monitor.vllm_frames import VLLM, family


def marks(memory: Memory) -> dict[str, str]:
    return {item.title: item.mark for item in only_server(memory).rail}


def begun(text: str = ARGS, *flags: str) -> Memory:
    main = process(100, 1, *COMMAND, *flags, out=LOG, err=LOG)
    return run(hello(), processes(1.0, main), log(2.0, text, start_=True))


def test_the_phases_that_come_are_there_from_the_first_line_on() -> None:
    first = list(marks(begun()))
    assert first == ["boot", "dist", "weights", "kv", "graphs", "warm-up", "serving"]
    assert list(marks(begun(ARGS + DIST + WEIGHTS))) == first, "nothing is pushed aside when it begins"


def test_what_the_command_line_leaves_out_is_never_shown() -> None:
    assert "graphs" not in marks(begun("", "--disable-cuda-graph"))
    eager = (msgspec.structs.replace(family()[0], argv=(*family()[0].argv, "--enforce-eager")), *family()[1:])
    assert "graphs" not in marks(run(hello(), processes(1.0, *eager)))
    plain = marks(run(hello(), processes(1.0, *family())))
    assert list(plain) == ["boot", "dist", "weights", "compile", "kv", "graphs", "warm-up", "serving"]


def test_a_phase_that_a_server_must_have_passed_unseen_is_not_to_come() -> None:
    serving = run(
        hello(100.0),
        processes(101.0, process(100, 1, *COMMAND, out=LOG, err=LOG)),
        log(102.0, READY, start_=True),
        http(103.0, HEALTH, status=200, body="{}"),
    )
    assert marks(serving) == {"weights": "unseen", "kv": "unseen", "serving": "active"}
    halfway = marks(begun(ARGS + CAPTURE))
    assert (halfway["weights"], halfway["graphs"], halfway["warm-up"]) == ("unseen", "active", "pending")
    whole = marks(begun(ARGS + DIST + WEIGHTS + LOADED + CAPTURE))
    assert (whole["dist"], whole["weights"]) == ("done", "done")


def test_a_server_that_serves_without_its_ready_line_does_not_wait_for_one() -> None:
    memory = run(
        hello(100.0),
        processes(101.0, *family()),
        http(103.0, HEALTH, status=200, body="{}"),
        msgspec.structs.replace(log(102.0, "INFO nothing known\n", start_=True), path=VLLM),
    )
    seen = only_server(memory)
    lamp = next(lamp for lamp in seen.lamps if lamp.name == "log")
    assert (seen.state, lamp.says, lamp.value) == ("ready", "unknown", "no ready line seen")
