from __future__ import annotations

import re
from itertools import pairwise

import pytest

from specdash.sim.engine.acts import Act, Bar, Do, Say, Setting, Show
from specdash.sim.engine.script import script
from specdash.sim.nvml import RESERVED_MIB, TOTAL_MIB
from specdash.sim.scenarios import SCENARIOS, Course
from tests.sim.shapes import recorded, shape

SETTING = Setting("/models/target", "/models/draft", 30000, 8, 3, 4, "target", 4242)

UNRECORDED = {
    # Blackwell's default, a made-up name of a model of that size, and the words of public reports.
    "Attention backend not specified. Use triton backend by default.",
    "Load weight end. elapsed=0 s, type=DeepseekV0ForCausalLM, avail mem=0 GB, mem usage=0 GB.",
}


def acts(course: Course | None = None, **changes: object) -> list[Act]:
    return script(course or Course(), SETTING._replace(**changes))  # type: ignore[arg-type]


def says(found: list[Act]) -> list[Say]:
    return [act for act in found if isinstance(act, Say)]


def bars(found: list[Act]) -> list[str]:
    return [act.text for act in found if isinstance(act, Bar) and act.text is not None]


def at(found: list[Act], words: str) -> float:
    return next(act.at for act in found if isinstance(act, Say) and words in act.text)


@pytest.mark.parametrize("draft", ["/models/draft", None])
def test_every_line_of_a_start_is_worded_as_it_was_recorded_on_real_gpus(draft: str | None) -> None:
    known = recorded() | UNRECORDED
    found = acts(draft=draft, draft_context=262144)
    lines = [act.text for act in says(found) if not act.text.startswith(("server_args=", "  "))]
    strange = {shape(line.replace("{stamp}", "1129 15:25:52.36")) for line in [*lines, *bars(found)]} - known
    assert strange == set()


def test_a_short_draft_is_told_of_in_the_recorded_words() -> None:
    warned = {shape(act.text) for act in says(acts(draft_context=131072))}
    assert any(line.startswith("Overriding the draft model's max_position_embeddings") for line in warned)
    refused = says(acts(Course(draft_is_strict=True), draft_context=131072))
    error = next(line for act in refused for line in act.text.split("\n") if line.startswith("ValueError"))
    assert {shape(error)} | {line for line in warned if line.startswith("Warning: Target")} <= recorded()


def test_the_override_variable_makes_a_warning_of_the_error() -> None:
    refused = acts(Course(draft_is_strict=True), draft_context=131072)
    assert refused[-1] == Do(refused[-1].at, "die")
    found = acts(Course(draft_is_strict=True), draft_context=131072, override=True)
    assert found[-1] == Do(found[-1].at, "open")


def test_the_arguments_are_one_giant_line_with_this_start_in_it() -> None:
    line = next(act.text for act in says(acts(port=31234)) if act.text.startswith("server_args="))
    assert len(line) > 10_000
    assert "\n" not in line
    assert "port=31234," in line
    assert "speculative_num_steps=3," in line
    assert "tp_size=8," in line


def test_a_healthy_start_has_the_storys_durations() -> None:
    found = acts()
    assert 18 * 60 < at(found, "type=DeepseekV3ForCausalLM") - at(found, "Load weight begin") < 22 * 60
    assert at(found, "max_total_num_tokens") - at(found, "Capture target prefill CUDA graph begin") < 120
    assert sum(" 64/64 " in text for text in bars(found)) == 2


def test_a_healthy_start_is_never_quiet_for_long() -> None:
    # Progress is a bar or a record; the shortest limits are 60 s at the beginning and 45 s in capture.
    times = [act.at for act in acts() if not isinstance(act, Show)]
    longest = max(later - earlier for earlier, later in pairwise([0.0, *times]))
    assert longest < 40


def test_ranks_speak_one_after_another_and_glue_their_records_to_the_open_bar() -> None:
    found = acts()
    assert {act.rank for act in says(found) if "Load weight end" in act.text} == set(range(8))
    first_end = at(found, "type=DeepseekV3ForCausalLM")
    closed = next(act.at for act in found if isinstance(act, Bar) and act.text is None)
    assert first_end < closed


def test_memory_comes_in_jumps_before_the_bars() -> None:
    found = acts()
    sizes = [act.mib for act in found if isinstance(act, Show)]
    assert sizes == sorted(sizes)
    loading = [act for act in found if isinstance(act, Show) and act.moods[0] == "loading"]
    assert loading[0].at < next(
        act.at for act in found if isinstance(act, Bar) and " 1/64 " in (act.text or "")
    )


_FREE = re.compile(r"(?:avail mem|avail_mem|available_gpu_mem)=([\d.]+) GB")


@pytest.mark.parametrize("draft", ["/models/draft", None])
@pytest.mark.parametrize("mem_fraction", [0.79, 0.98])
def test_what_the_log_calls_free_is_what_the_cards_show_at_that_moment(
    draft: str | None, mem_fraction: float
) -> None:
    found = acts(draft=draft, mem_fraction=mem_fraction)
    shown = [act for act in found if isinstance(act, Show)]
    told = 0
    for act in found:
        if isinstance(act, Say | Bar) and (said := _FREE.search(act.text or "")):
            # At the very moment of a change both figures are right.
            before = [show.mib for show in shown if show.at < act.at][-1]
            since = [show.mib for show in shown if show.at <= act.at][-1]
            free = [(TOTAL_MIB - RESERVED_MIB - mib) / 1024 for mib in (before, since)]
            assert min(abs(float(said[1]) - gib) for gib in free) < 0.05, act.text
            told += 1
    assert told > 100


def test_the_pools_get_what_the_fraction_and_the_weights_leave_them() -> None:
    # SGLang's own reckoning: of the memory before the weights, 1 - mem_fraction_static stays free.
    for setting in (SETTING, SETTING._replace(draft=None), SETTING._replace(mem_fraction=0.98)):
        found = script(Course(), setting)
        begin = next(act.text for act in says(found) if act.text.startswith("Load weight begin"))
        end = [act.text for act in says(found) if act.text.startswith("Memory pool end")][-1]
        before, free = (float(_FREE.search(text)[1]) for text in (begin, end))  # type: ignore[index]
        assert free == pytest.approx(before * (1 - setting.mem_fraction), abs=0.02)


def test_a_server_without_a_draft_holds_more_tokens() -> None:
    held = [
        int(re.search(r"max_total_num_tokens=(\d+)", act.text)[1])  # type: ignore[index]
        for draft in ("/models/draft", None)
        for act in says(acts(draft=draft))
        if act.text.startswith("max_total_num_tokens")
    ]
    assert SETTING.target_context < held[0] < held[1]


def test_the_hang_leaves_the_bar_open_and_one_rank_idle_while_the_others_spin() -> None:
    found = acts(SCENARIOS["zombie"].starts[0])
    last = found[-1]
    assert isinstance(last, Show)
    assert last.moods == ("waiting",) * 3 + ("guilty",) + ("waiting",) * 4
    assert last.mib == 76 * 1024
    ends = [act for act in found if isinstance(act, Bar)]
    assert ends[-1].text is not None
    assert "6/23" in ends[-1].text
    assert not any(isinstance(act, Do) and act.what == "open" for act in found)


def test_out_of_memory_names_the_card_and_ends_the_server() -> None:
    found = acts(SCENARIOS["oom"].starts[0], mem_fraction=0.98)
    assert any("GPU 5 has a total capacity of 94.99 GiB" in act.text and act.rank == 5 for act in says(found))
    free = [float(said[1]) for text in bars(found) if (said := _FREE.search(text))]
    assert free[-1] < 1.5
    assert found[-1] == Do(found[-1].at, "die")


def test_a_compiler_runs_for_as_long_as_the_first_bar_stands_still() -> None:
    found = acts(SCENARIOS["jit"].starts[0])
    began, ended = (act.at for act in found if isinstance(act, Do) and act.what in ("compile", "compiled"))
    still = [act.at for act in found if isinstance(act, Bar) and "num_tokens=8192" in (act.text or "")]
    assert ended - began > 240
    assert still[0] <= began < ended < still[1]


def test_the_lagging_rank_is_the_last_to_have_its_weights() -> None:
    ends = {
        act.rank: act.at for act in says(acts(SCENARIOS["rank-lag"].starts[0])) if "type=Deepseek" in act.text
    }
    assert max(ends, key=lambda rank: ends[rank]) == 5
    assert ends[5] - sorted(ends.values())[-2] > 120


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_tells_one_story_from_begin_to_end(name: str) -> None:
    for course in SCENARIOS[name].starts:
        found = acts(course, draft_context=SCENARIOS[name].draft_context)
        assert [act.at for act in found] == sorted(act.at for act in found)
        assert {act.what for act in found if isinstance(act, Do)} >= {"spawn", "title"}


def test_one_gpu_alone_needs_no_other_rank() -> None:
    found = acts(tp=1)
    assert {act.rank for act in says(found)} == {None, 0}
    assert not any("multimem" in act.text for act in says(found))
