"""READY is proven by a token: one that we asked for, or one that somebody else was seen to get."""

from __future__ import annotations

from specdash.monitor.frames import AnyFrame
from specdash.monitor.memory import Memory
from specdash.monitor.polling import METRICS
from specdash.monitor.serverparts import Lamp
from specdash.monitor.status import status_document
from specdash.reports.look import describe
from specdash.tui.widgets.glyphs import state_span
from tests.monitor.frames_of import http, run
from tests.monitor.vllm_frames import STOPPED, counters, first_look, second_look


def lamp(memory: Memory) -> Lamp:
    return next(lamp for lamp in memory.picture.servers[0].lamps if lamp.name == "token")


def glyphs(memory: Memory) -> set[str]:
    """The state's glyph, as ``status`` and as the dashboard show it."""
    server = memory.picture.servers[0]
    line = next(line for line in describe(memory.picture) if server.name in line)
    return {line[0], state_span(server).text[0]}


def test_tokens_that_others_get_prove_it_and_were_not_asked_for() -> None:
    quiet = run(counters(1002.6, 0), memory=run(counters(1000.5, 0), memory=first_look({})))
    assert (lamp(quiet).value, glyphs(quiet)) == ("not asked", {"○"})
    proven = run(counters(1004.0, 9), memory=quiet)
    assert (lamp(proven).says, lamp(proven).value, glyphs(proven)) == ("yes", "seen in its counters", {"●"})
    told = status_document(proven.picture).servers[0].readiness["token"]
    assert (told["asked"], told["says"], told["age_s"]) == (False, "yes", 0.0)


def test_tokens_counted_before_we_looked_prove_it_to_one_look_too() -> None:
    once = second_look(first_look({}, running=0), {}, running=0)
    assert (lamp(once).says, lamp(once).value, glyphs(once)) == (
        "yes",
        "9000 counted since it started",
        {"●"},
    )
    told = status_document(once.picture).servers[0].readiness["token"]
    assert (told["asked"], told["age_s"]) == (False, None), "when the last of them came is not known"
    assert once.picture.servers[0].proven_at is None


def test_prompt_tokens_alone_prove_nothing() -> None:
    def page(at: float, prompt: int) -> AnyFrame:
        body = f"vllm:generation_tokens_total 0.0\nvllm:prompt_tokens_total {prompt}.0\n"
        return http(at, METRICS, status=200, body=body)

    assert lamp(run(page(1001.0, 5), page(1003.0, 900), memory=first_look({}))).value == "not asked"


def test_a_token_that_did_not_come_to_us_outweighs_an_older_one_of_others() -> None:
    proven = run(counters(1004.0, 9100), memory=second_look(first_look({}), {}))
    failed = run(http(1006.0, "/v1/completions", error="timeout"), memory=proven)
    assert (lamp(failed).says, lamp(failed).asked, glyphs(failed)) == ("no", True, {"○"})


def test_a_stall_in_serving_has_reached_serving_and_status_names_commands_not_keys() -> None:
    stalled = second_look(first_look(STOPPED), STOPPED).picture
    rail = {item.phase: item.mark for item in stalled.servers[0].rail}
    assert rail["serving"] == "failed"
    text = "\n".join(describe(stalled))
    assert "✖ serving" in text
    assert "kill -CONT 102 lets it go on" in text
    assert "specdash kill gpubox ends it" in text
