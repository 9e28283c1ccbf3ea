"""Each rule of the verdict, one test a rule: remove the rule and its test fails."""

from __future__ import annotations

from typing import Any

import pytest

from specdash.engines.common import default_limits
from specdash.monitor.documents import Progress, Reason, Verdict
from specdash.monitor.evidence import CardSeen, Evidence, RankSeen
from specdash.monitor.limits import Learned
from specdash.monitor.liveness import assess, suspects
from specdash.monitor.signs import folded, in_words
from specdash.monitor.words import PHASES, Phase, Says

LIMITS = default_limits()


def judge(learned: Learned | None = None, **seen: Any) -> Verdict:
    return assess(Evidence(**seen), LIMITS, learned)


def still(phase: Phase, age: float, **seen: Any) -> dict[str, Any]:
    """Everything that could be read stands still for ``age`` seconds."""
    ages = {
        "progress_age_s": age,
        "milestone_age_s": age,
        "line_age_s": age,
        "nccl_age_s": age,
        "process_age_s": age,
        "cpu_age_s": age,
        "read_age_s": age,
        "memory_age_s": age,
        "warmup_age_s": age,
        "batch_age_s": age,
        "tokens_age_s": age,
    }
    return {"phase": phase, "compilers": (), **ages, **seen}


# --- the table ---

TABLE = [
    ("boot", 60, 300),
    ("dist_init", 60, 120),
    ("weights", 120, 300),
    ("kv_cache", 30, 120),
    ("compile", 120, 600),
    ("capture", 45, 120),
    ("warmup", 60, 300),
    ("serving", 15, 60),
]


@pytest.mark.parametrize(("phase", "suspect_s", "stalled_s"), TABLE)
def test_each_phase_becomes_suspect_and_stalled_at_its_own_limits(
    phase: Phase, suspect_s: float, stalled_s: float
) -> None:
    work = {"running": 1} if phase == "serving" else {}
    assert judge(**still(phase, suspect_s - 1, **work)).word in ("working", "quiet", "ready")
    assert judge(**still(phase, suspect_s, **work)).word == "suspect"
    assert judge(**still(phase, stalled_s - 1, **work)).word == "suspect"
    stalled = judge(**still(phase, stalled_s, **work))
    assert (stalled.word, stalled.since_s, stalled.limit_s) == ("stalled", stalled_s, stalled_s)


LIFE = {
    "boot": {"milestone_age_s", "progress_age_s", "line_age_s", "process_age_s", "cpu_age_s", "read_age_s"},
    "dist_init": {"milestone_age_s", "nccl_age_s"},
    "weights": {"progress_age_s", "milestone_age_s", "read_age_s", "cpu_age_s", "memory_age_s"},
    "kv_cache": {"milestone_age_s", "cpu_age_s"},
    "compile": {"progress_age_s", "milestone_age_s", "cpu_age_s"},
    "capture": {"progress_age_s", "milestone_age_s"},
    "warmup": {"milestone_age_s", "warmup_age_s", "batch_age_s"},
    "serving": {"tokens_age_s", "batch_age_s"},
}


@pytest.mark.parametrize("phase", PHASES)
def test_only_what_the_phase_counts_as_life_vetoes_a_stall(phase: Phase) -> None:
    frozen = still(phase, 1000, running=1)
    for signal in [key for key in frozen if key.endswith("_age_s")]:
        word = judge(**{**frozen, signal: 1.0}).word
        assert (word != "stalled") == (signal in LIFE[phase]), f"{signal} in {phase}: {word}"


@pytest.mark.parametrize("phase", ["compile", "capture", "warmup"])
def test_compilers_at_work_are_life_although_the_bar_stands_still(phase: Phase) -> None:
    verdict = judge(**still(phase, 5000, compilers=("nvcc", "cicc")))
    assert verdict.word == "working"
    assert any(reason.value == "cicc, nvcc" and reason.says == "alive" for reason in verdict.reasons)


@pytest.mark.parametrize("phase", ["dist_init", "weights", "kv_cache", "serving"])
def test_compilers_excuse_nothing_in_the_other_phases(phase: Phase) -> None:
    assert judge(**still(phase, 5000, compilers=("nvcc",), running=1)).word == "stalled"


@pytest.mark.parametrize(("cpu_pct", "word"), [(20, "working"), (19, "stalled"), (2, "stalled")])
def test_a_process_counts_as_busy_from_a_fifth_of_a_core(cpu_pct: float, word: str) -> None:
    ranks = (RankSeen(name="TP0", state="S", cpu_pct=cpu_pct),)
    assert judge(**still("weights", 400, ranks=ranks)).word == word


@pytest.mark.parametrize("phase", ["dist_init", "capture"])
def test_a_spinning_rank_is_no_life_where_a_hang_spins(phase: Phase) -> None:
    ranks = (RankSeen(name="TP0", state="R", cpu_pct=100, util=100, power_w=140),)
    cards = (CardSeen(index=0, util=100, power_w=140),)
    verdict = judge(**still(phase, 700, ranks=ranks, cards=cards, memory_age_s=0))
    assert verdict.word == "stalled"
    spin = next(reason for reason in verdict.reasons if reason.signal == "utilisation")
    assert spin.says == "bad"


def test_only_the_main_process_may_excuse_a_quiet_warm_up() -> None:
    rank = RankSeen(name="TP0", state="R", cpu_pct=100)
    assert judge(**still("warmup", 400, ranks=(rank,))).word == "stalled"
    main = RankSeen(name="main", state="R", cpu_pct=100)
    assert judge(**still("warmup", 400, main=main)).word == "working"


def test_ranks_on_other_hosts_may_come_eleven_minutes_late() -> None:
    assert judge(**still("dist_init", 659, nodes=2)).word == "suspect"
    assert judge(**still("dist_init", 660, nodes=2)).word == "stalled"


def test_a_quiet_phase_with_life_says_when_it_last_progressed() -> None:
    verdict = judge(
        **still("weights", 620, read_age_s=1.0, progress=Progress(done=3, total=64, unit="shards"))
    )
    assert (verdict.word, verdict.since_s, verdict.limit_s) == ("working", 1.0, 300)
    bar = next(reason for reason in verdict.reasons if reason.signal == "bar")
    assert (bar.value, bar.age_s, bar.says) == ("3/64", 620, "flat")


def test_the_age_of_the_last_life_names_whose_it_is() -> None:
    assert judge(**still("weights", 620, read_age_s=1.2, cpu_age_s=0.0)).by == "read"
    assert judge(**still("weights", 620, cpu_age_s=0.0)).by == "cpu"
    assert judge(**still("serving", 9, running=1, batch_age_s=30.0)).by == "tokens"
    assert judge(**still("serving", 9, running=1, batch_age_s=30.0, tokens_seen=False)).by == "look"


# --- what cannot be read ---


def test_an_unreadable_signal_neither_vetoes_nor_accuses() -> None:
    assert judge(phase="capture").word == "unknown"
    assert judge(phase="capture", progress_age_s=130).word == "stalled"
    assert judge(phase="weights", progress_age_s=1, read_age_s=None, compilers=None).word == "working"
    assert judge(phase="serving", running=3).word == "ready"
    assert {reason.says for reason in judge(phase="capture").reasons} == {"unknown"}


def test_without_a_phase_nothing_is_claimed() -> None:
    verdict = judge(line_age_s=9999)
    assert (verdict.word, verdict.limit_s) == ("unknown", None)


# --- serving ---


def test_an_idle_server_may_be_quiet_for_ever() -> None:
    for running in (0, None):
        verdict = judge(**still("serving", 1e6, running=running))
        assert (verdict.word, verdict.limit_s) == ("ready", None)
        assert all(reason.says != "flat" for reason in verdict.reasons)


@pytest.mark.parametrize("life", ["tokens_age_s", "batch_age_s", "loads_age_s"])
def test_tokens_batches_or_a_fresh_load_report_prove_a_busy_server_alive(life: str) -> None:
    assert judge(**{**still("serving", 100, running=2), life: 0.5}).word == "ready"


def test_a_gpu_at_half_its_power_limit_excuses_five_minutes_without_a_token() -> None:
    busy = (CardSeen(index=0, util=100, power_w=350, power_limit_w=700),)
    spinning = (CardSeen(index=0, util=100, power_w=349, power_limit_w=700),)
    assert judge(**still("serving", 299, running=1, cards=busy)).word == "ready"
    assert judge(**still("serving", 300, running=1, cards=busy)).word == "stalled"
    assert judge(**still("serving", 299, running=1, cards=spinning)).word == "stalled"


# --- at once ---


def test_a_stopped_rank_stalls_five_seconds_after_the_last_progress() -> None:
    ranks = (RankSeen(name="TP0", state="R"), RankSeen(name="TP1", state="T", state_age_s=0.0))
    for phase in ("capture", "serving"):
        assert judge(**still(phase, 4.9, running=1, ranks=ranks)).word == "suspect"
        verdict = judge(**still(phase, 5.0, running=1, ranks=ranks))
        assert verdict.word == "stalled"
        assert verdict.reasons[0].value == "TP1 stopped (state T)"


def test_a_rank_that_two_looks_find_stopped_stalls_a_busy_server_whatever_moved_just_before() -> None:
    rank = RankSeen(name="TP1", pid=31, state="T", state_age_s=1.0, twice=True)
    verdict = judge(**still("serving", 0.2, running=1, ranks=(rank,)))
    assert verdict.word == "stalled"
    assert verdict.reasons[0].value == "TP1 31 stopped (state T)"
    for more in ({"main": rank}, {"others": (rank,)}):
        assert judge(**still("serving", 0.2, running=1, **more)).word == "stalled"
    assert judge(**still("weights", 0.2, ranks=(rank,))).word == "suspect", "others may still be reading"


def test_nothing_clears_a_stall_while_a_rank_is_stopped() -> None:
    rank = RankSeen(name="TP1", state="T", state_age_s=9.0)
    for phase in ("weights", "capture", "serving"):
        assert judge(**still(phase, 0.0, running=1, ranks=(rank,), halted=True)).word == "stalled"
    assert judge(**still("serving", 0.0, running=1, halted=True)).word == "ready"


def test_a_stopped_rank_of_an_idle_server_must_have_stood_for_five_seconds() -> None:
    def word(held_s: float) -> str:
        rank = RankSeen(name="TP1", state="T", state_age_s=held_s)
        return judge(**still("serving", 500, running=0, ranks=(rank,))).word

    assert (word(4.9), word(5.0)) == ("suspect", "stalled")


def test_a_rank_dead_beside_a_living_main_process_is_a_crash_at_once() -> None:
    main = RankSeen(name="main", state="S")
    for state in ("Z", "gone"):
        dead = RankSeen(name="TP1", state=state)
        verdict = judge(**still("serving", 0, running=1, main=main, ranks=(dead,)))
        assert verdict.word == "crashed"
        assert verdict.reasons[0].value.startswith("TP1 ")


def test_a_dead_main_process_is_a_crash_unless_it_was_asked_to_end() -> None:
    main = RankSeen(name="main", state="gone", state_age_s=1.0)
    assert judge(phase="serving", main=main).word == "crashed"
    assert judge(phase="serving", main=main, stopping=True).word == "stopped"
    dead = RankSeen(name="TP1", state="gone")
    assert judge(phase="serving", ranks=(dead,), stopping=True).word == "stopped"


def test_an_old_load_report_with_running_requests_stalls_after_ten_seconds() -> None:
    frozen = still("serving", 11, running=2)
    assert judge(**frozen, loads_age_s=10.0).word == "ready"
    assert judge(**frozen, loads_age_s=10.1).word == "stalled"
    assert judge(**{**frozen, "running": 0}, loads_age_s=1000).word == "ready"
    assert judge(**{**frozen, "batch_age_s": 1.0}, loads_age_s=11).word == "ready"


def test_zero_throughput_with_running_requests_stalls_once_counters_were_flat_for_15_s() -> None:
    assert judge(phase="serving", running=1, zero_stats_s=9, tokens_age_s=14.9).word == "ready"
    assert judge(phase="serving", running=1, zero_stats_s=9, tokens_age_s=15.0).word == "stalled"
    assert judge(phase="serving", running=1, zero_stats_s=30).word == "stalled"
    assert judge(phase="serving", running=1, zero_stats_s=None, tokens_age_s=15.0).word == "suspect"


def test_half_a_minute_in_the_driver_or_on_storage_is_a_stall() -> None:
    def word(held_s: float, **seen: Any) -> str:
        rank = RankSeen(name="TP0", state="D", state_age_s=held_s)
        return judge(**{**still("weights", 31, ranks=(rank,)), **seen}).word

    assert (word(29.9), word(30.0)) == ("quiet", "stalled")
    assert word(60.0, read_age_s=0.0) == "working"


def test_whatever_moved_in_the_last_five_seconds_holds_the_at_once_rules_back() -> None:
    rank = RankSeen(name="TP1", state="T", state_age_s=60)
    assert judge(**{**still("weights", 60, ranks=(rank,)), "read_age_s": 4.9}).word == "suspect"
    assert judge(**{**still("weights", 60, ranks=(rank,)), "read_age_s": 5.0}).word == "stalled"


# --- learning ---


@pytest.mark.parametrize(
    ("phase", "gap", "suspect_s", "stalled_s"),
    [
        ("capture", 12.0, 36, 72),
        ("capture", 1.0, 30, 60),
        ("capture", 34.0, 45, 90),
        ("kv_cache", 1.0, 30, 60),
        ("weights", 20.0, 60, 120),
    ],
)
def test_earlier_starts_tighten_the_limits_and_never_loosen_them(
    phase: Phase, gap: float, suspect_s: float, stalled_s: float
) -> None:
    learned = Learned(gap_s={phase: gap}, starts=1)
    assert judge(learned, **still(phase, suspect_s - 0.1)).word in ("working", "quiet")
    assert judge(learned, **still(phase, suspect_s)).word == "suspect"
    assert judge(learned, **still(phase, stalled_s)).word == "stalled"
    assert judge(learned, **still(phase, stalled_s)).limit_s == stalled_s


def test_nothing_is_learned_about_serving() -> None:
    learned = Learned(gap_s={"serving": 1.0}, starts=9)
    assert judge(learned, **still("serving", 14, running=1)).word == "ready"
    assert judge(learned, **still("serving", 59, running=1)).word == "suspect"


# --- who holds the others up ---


def named(*ranks: RankSeen, behind: tuple[str, ...] = ()) -> tuple[str, ...]:
    return suspects(Evidence(ranks=ranks, behind=behind), LIMITS.thresholds)


def test_the_rank_at_rest_beside_a_spinning_one_is_the_guilty_one() -> None:
    waiting = RankSeen(name="TP0", state="R", util=100, power_w=166, power_limit_w=700)
    guilty = RankSeen(name="TP1", state="S", util=0, power_w=126, power_limit_w=700)
    assert named(waiting, guilty) == ("TP1",)
    assert named(RankSeen(name="TP0", state="R"), RankSeen(name="TP1", state="S")) == ("TP1",)


def test_a_rank_that_computes_does_not_make_its_neighbour_guilty() -> None:
    working = RankSeen(name="TP0", state="R", util=100, power_w=600, power_limit_w=700)
    assert named(working, RankSeen(name="TP1", state="S", util=0)) == ()


def test_a_stopped_rank_is_named_even_alone() -> None:
    assert named(RankSeen(name="TP0", state="T")) == ("TP0",)


def test_else_the_rank_a_milestone_behind_else_nobody() -> None:
    alike = (RankSeen(name="TP0", state="R", util=100), RankSeen(name="TP1", state="R", util=100))
    assert named(*alike, behind=("TP1",)) == ("TP1",)
    assert named(*alike) == ()


def test_a_reason_says_its_age_once_and_in_plain_words() -> None:
    def told(signal: str, value: str, age_s: float | None, says: Says) -> str:
        return in_words(Reason(signal=signal, value=value, age_s=age_s, says=says))

    assert told("milestone", "last one", 287, "flat") == "last one 4:47 ago"
    assert told("bar", "4/8", 28, "flat") == "4/8 · unchanged for 28 s"
    assert told("cpu", "TP0 2 %", 28, "flat") == "TP0 2 % · idle for 28 s"
    assert told("cpu", "last use", 28, "flat") == "last use 28 s ago"
    assert (
        told("memory", "last growth (not counted)", 90, "flat")
        == "last growth 1:30 ago (does not count here)"
    )
    assert told("tokens", "none since we look", 3, "flat") == "none since we look, 3 s"
    assert told("process", "TP3 12 stopped (state T)", 34, "bad") == "TP3 12 stopped (state T) · for 34 s"


def test_all_that_was_not_seen_is_one_line() -> None:
    names = ("bar", "main_cpu", "read")
    unread = [Reason(signal=name, value="not seen", age_s=None, says="unknown") for name in names]
    line = Reason(signal="line", value="last one", age_s=4, says="alive")
    first, second = folded([unread[0], line, *unread[1:]])
    assert first == line
    assert (second.signal, second.value) == (
        "not seen",
        "progress bar, the main process's CPU time, bytes read",
    )
    assert folded([line, unread[0]]) == (line, unread[0])
