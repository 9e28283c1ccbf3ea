"""Variants side by side, in words."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from specdash.bench.counters import ServerSide
from specdash.bench.events import Client
from specdash.bench.figures import Run
from specdash.bench.plan import Workload
from specdash.bench.record import Measured
from specdash.bench.statistics import Ratio
from specdash.bench.table import Table, tables
from specdash.bench.words import apart, delta, markdown, text
from tests.bench.orders import mirrored


def measured(number: int, tok_s: float, variant: str = "baseline", **changes: object) -> Measured:
    run = Run(
        concurrency=1,
        requests=32,
        errors=0,
        duration_s=60,
        output_tok_s=tok_s,
        decode_tok_s=tok_s * 1.01,
        output_tokens=4096,
    )
    load = Workload(url="h:1")
    whole = Measured(at=1000.0 * number, host="gpubox", launch=variant, workload=load, run=run)
    whole = msgspec.structs.replace(whole, id=number, variant=variant)
    return msgspec.structs.replace(whole, **changes)


def _spec(run: Measured, length: float) -> Measured:
    side = ServerSide(accept_length=length, per_position=(0.68, 0.45, 0.27))
    return msgspec.structs.replace(
        run, run=msgspec.structs.replace(run.run, accept_length=length, server=side)
    )


def story(launch: str | None = None) -> list[Measured]:
    base, three = [82.1, 82.5, 83.0, 81.9, 82.6], [60.2, 60.0, 59.1, 60.9, 60.3]
    out = []
    for number, arm in enumerate(mirrored(5), 1):
        speed = three.pop(0) if arm else base.pop(0)
        run = _spec(measured(number, speed, "eagle3-3"), 2.4) if arm else measured(number, speed)
        out.append(run if launch is None else msgspec.structs.replace(run, launch=launch))
    return out


def told(found: Iterable[Table]) -> str:
    return "\n".join(text(tuple(found)))


def test_the_storys_table() -> None:
    assert told(tables(story())).splitlines() == [
        "1 stream, 128 in 128 out, chat",
        "  variant   n  median tok/s       95 %    Δ of means  verdict",
        "  baseline  5          82.5  81.9–83.0             –  reference",
        "  eagle3-3  5          60.2  59.3–60.9  −27.1 % ±4.2  slower, provisional",
        "      accept 2.40 of at most 4 (p .68 .45 .27) · cycle 39.5 ms, plain step 12.0 ms"
        " · break-even 3.29 · decode without TTFT −27.0 %",
        "    ▲ it does not pay: needs a draft accepted 87 % of the time, has about 66 %",
        "      likely cause: a cycle costs 3.3 plain steps: verifying is dear here, not the draft's guesses",
        "      1 launch each: the next launch may differ",
        "      in ±4.2: ±4.0 for launches (each differs by 2.0 %, assumed until four are known),"
        " ±1.0 for the runs; they add as squares",
    ]


def test_what_is_not_settled_is_not_explained() -> None:
    runs = story()
    for at, speed in zip((1, 2, 5, 6, 9), (30.0, 250.0, 12.0, 160.0, 60.0), strict=True):
        found = msgspec.structs.replace(runs[at].run, output_tok_s=speed, decode_tok_s=speed)
        runs[at] = msgspec.structs.replace(runs[at], run=found)
    text = told(tables(runs))
    assert "±>100  not distinguishable" in text
    assert "whether that pays is not settled: see the verdict" in text
    assert "likely cause" not in text


def test_a_run_that_does_not_count_is_named_below_its_row() -> None:
    run = Run(
        concurrency=1, requests=32, errors=0, duration_s=60, output_tok_s=50, client=Client(limited=True)
    )
    found = told(tables([*story(), measured(11, 50, "eagle3-3", run=run)]))
    assert "    ✖ run 11 does not count: client-limited: the load generator itself was too slow" in found
    assert "  eagle3-3  5          60.2" in found


def test_an_old_number_stands_below_what_was_measured() -> None:
    claim = measured(12, 94.0, claimed=True, at=1_763_600_000.0)
    found = told(tables([*story(), claim]))
    assert (
        "    ▲ claimed 94.0 tok/s (2025-11-20): not reproduced: outside 81.1–83.7, where one more of these"
        " runs would fall (95 %)" in found
    )
    assert "  baseline  5          82.5" in found, "it is no run"


def test_different_loads_are_never_in_one_table() -> None:
    other = measured(11, 900, workload=Workload(url="h:1", concurrency=64))
    found = tables([*story(), other])
    assert [table.cell for table in found] == [
        "1 stream, 128 in 128 out, chat",
        "64 streams, 128 in 128 out, chat",
    ]
    assert found[1].rows[0].judgement is None


def test_the_baseline_can_be_chosen() -> None:
    (table,) = tables(story(), baseline="eagle3-3")
    assert [(row.variant, row.baseline) for row in table.rows] == [("eagle3-3", True), ("baseline", False)]
    assert table.rows[1].judgement is not None
    assert table.rows[1].judgement.word == "faster"


def test_a_baseline_that_was_not_measured_gives_no_verdict() -> None:
    (table,) = tables(story(), baseline="2-step")
    assert all(row.judgement is None for row in table.rows)


def test_another_driver_is_said() -> None:
    runs = [
        msgspec.structs.replace(run, fingerprint={"driver": "580" if run.variant == "baseline" else "575"})
        for run in story()
    ]
    assert "▲ also differs from the reference in: driver" in told(tables(runs))


def test_a_row_whose_own_runs_were_of_different_servers_says_so() -> None:
    runs = [
        msgspec.structs.replace(
            run, fingerprint={"model": "m" if run.id in (None, 1) else "other", "host": "h"}
        )
        for run in story()
        if run.variant == "baseline"
    ]
    found = told(tables(runs))
    assert found.count("▲ its own runs differ in: model") == 1
    assert "host" not in found
    assert "differ" not in told(tables(runs[1:]))


def test_a_baseline_is_that_of_its_own_host() -> None:
    there = [msgspec.structs.replace(run, id=50 + (run.id or 0), host="dgx") for run in story()]
    (table,) = tables([*story(), *there], baseline="baseline", baseline_host="dgx")
    assert [(row.host, row.variant) for row in table.rows if row.baseline] == [("dgx", "baseline")]


def test_only_a_slower_row_fails_a_check() -> None:
    (table,) = tables(story("same"))
    assert [row.variant for row in table.slower] == ["eagle3-3"]
    (alike,) = tables([run for run in story("same") if run.variant == "baseline"])
    assert alike.slower == ()


def test_markdown_for_a_ticket_cannot_be_broken_by_a_name() -> None:
    runs = [msgspec.structs.replace(r, variant=r.variant.replace("eagle3-3", "a|<b>")) for r in story()]
    lines = list(markdown(tables(runs)))
    assert lines[0] == "**1 stream, 128 in 128 out, chat**"
    rows = [line for line in lines if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert "a\\|\\<b\\>" in rows[-1]


@pytest.mark.parametrize("same", [True, False])
def test_two_fingerprints_field_by_field(same: bool) -> None:
    other = {"driver": "580"} if same else {"driver": "575", "flag --tp": "8"}
    lines = list(apart({"driver": "580"}, other, "run 1", "run 2"))
    assert lines == (
        ["run 1 and run 2: nothing that was seen of the two differs"]
        if same
        else ["run 1 and run 2 differ in:", "  driver     580  →  575", "  flag --tp  –  →  8"]
    )


def test_a_manifold_difference_is_a_factor_and_a_wide_one_that_may_be_none_stays_open() -> None:
    def told(value: float, se: float) -> str:
        return delta(Ratio(value=value, pairs=4, se=se))

    assert told(4.35, 0.3) == "×4.3 (2.4–7.8)"
    assert told(1.059, 0.035).startswith("+5.9 % ±7.")
    assert told(1.3, 1.0) == "+30.0 % ±>100"
