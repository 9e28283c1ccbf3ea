"""READY is proven by a token: one that we asked for, or one that somebody else was seen to get."""

from __future__ import annotations

import msgspec

from specdash.monitor.frames import AnyFrame
from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH, METRICS
from specdash.monitor.serverparts import Lamp
from specdash.monitor.status import status_document
from specdash.reports.look import describe
from specdash.tui.widgets.glyphs import state_span
from tests.monitor.frames_of import hello, http, log, processes, run, server
from tests.monitor.vllm_frames import STOPPED, counters, first_look, second_look

SGLANG_READY = "[2026-11-02 01:20:11] The server is fired up and ready to roll!\n"
SGLANG = (
    "[2026-11-02 01:20:00] server_args=ServerArgs(model_path='/models/t', port=30000, tp_size=2)\n"
    "[2026-11-02 01:20:02 TP0] Load weight begin. avail mem=90.00 GB\n"
    "[2026-11-02 01:20:05 TP0] Load weight end. type=LlamaForCausalLM, avail mem=70.00 GB\n"
    '[2026-11-02 01:20:10] INFO:     127.0.0.1:1 - "GET /model_info HTTP/1.1" 200 OK\n' + SGLANG_READY
)


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
        "9,000 counted",
        {"●"},
    )
    told = status_document(once.picture).servers[0].readiness["token"]
    assert (told["asked"], told["age_s"]) == (False, None), "when the last of them came is not known"
    assert once.picture.servers[0].proven_at is None


def warmed(tokens: int, *flags: str) -> Memory:
    """Our first look at SGLang's counters after its own warm-up, somebody having had the rest."""
    main, *ranks = server()
    main = msgspec.structs.replace(main, argv=(*main.argv, *flags))
    return run(
        hello(1000.0),
        processes(1000.1, main, *ranks),
        log(1000.2, SGLANG, start_=True, mtime=500.0),
        http(1000.3, HEALTH, status=200),
        sglang_counters(1000.4, tokens),
    )


def sglang_counters(at: float, tokens: int) -> AnyFrame:
    return http(at, METRICS, status=200, body=f"sglang:generation_tokens_total {tokens}.0\n")


def test_what_sglangs_own_warm_up_generated_proves_nothing_and_one_token_more_does() -> None:
    own = warmed(8)
    assert own.picture.servers[0].state == "ready"
    assert (lamp(own).says, lamp(own).value) == ("unknown", "not asked: 8 of its own warm-up")
    assert glyphs(own) == {"○"}
    later = run(sglang_counters(1009.4, 9), memory=own)
    assert (lamp(later).value, glyphs(later)) == ("seen in its counters", {"●"})
    assert lamp(warmed(9)).value == "9 counted"
    assert lamp(warmed(16, "--dp-size", "2")).says == "unknown", "each replica is warmed up"
    assert lamp(warmed(3, "--skip-server-warmup")).value == "3 counted"


def test_a_warm_up_that_ends_between_two_looks_proves_nothing() -> None:
    begun = run(
        hello(1000.0),
        processes(1000.1, *server(started=990.0)),
        log(1000.2, SGLANG.partition("[2026-11-02 01:20:11] The server")[0], start_=True),
        sglang_counters(1001.0, 0),
    )
    ready = run(log(1003.0, SGLANG_READY, 9999), sglang_counters(1004.0, 8), memory=begun)
    assert ready.picture.servers[0].state == "ready"
    assert lamp(ready).says == "unknown"
    served = run(sglang_counters(1014.0, 20), memory=ready)
    assert (lamp(served).says, lamp(served).value) == ("yes", "seen in its counters")


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
