"""Benchmark runs in the history: kept with everything, found again, and readable for ever."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from specdash.bench.events import Begin, End, Request
from specdash.bench.figures import Run
from specdash.bench.plan import Workload
from specdash.bench.record import During, Measured, Seen
from specdash.history.runs import Runs
from specdash.history.store import MIGRATIONS, HistoryError, Store

LOAD = Workload(url="http://127.0.0.1:30000", concurrency=4)


def measured(at: float = 1000.0, **changes: object) -> Measured:
    run = Measured(
        at=at,
        host="gpubox",
        variant="eagle3-3",
        launch="boot/4242:17",
        workload=LOAD,
        run=Run(concurrency=4, requests=32, errors=0, duration_s=60, output_tok_s=82.5, output_tokens=4096),
        during=During(samples=60, sm_mhz=Seen(low=1900, mean=1980, high=1995), throttled={"power cap": 0.5}),
        fingerprint={"engine": "sglang", "env.NCCL_ALGO": "Ring"},
        speed=(80.0, 83.0),
    )
    return msgspec.structs.replace(run, **changes)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "history.db")


def test_a_run_comes_back_as_it_was(runs: Runs) -> None:
    events = (Begin(at=1000.0), Request(n=0, sent=0.1, first=0.2, last=0.9, tokens=128), End(t=60.0, done=1))
    kept = runs.add(measured(tags=("night",)), events)
    assert kept.id == 1
    assert runs.get(1) == kept
    assert runs.records(1) == events
    assert runs.all() == (kept,)


def test_runs_are_found_by_number_name_variant_and_tag(runs: Runs) -> None:
    runs.add(measured(1))
    runs.add(measured(2, variant="baseline"))
    runs.rename(2, "before the patch")
    runs.tag(1, ["night", "night"])
    assert [run.id for run in runs.find("eagle3-3")] == [1]
    assert [run.id for run in runs.find("before the patch")] == [2]
    assert [run.id for run in runs.find("night")] == [1]
    assert [run.id for run in runs.find("2")] == [2]
    runs.tag(1, ["night"], off=True)
    with pytest.raises(HistoryError, match="no run is called night"):
        runs.find("night")


def test_the_number_of_a_deleted_run_never_means_another(runs: Runs) -> None:
    runs.add(measured(1), [End()])
    assert runs.delete([1, 7]) == 1
    assert runs.add(measured(2)).id == 2
    assert runs.records(1) == ()
    for act in (lambda: runs.get(1), lambda: runs.rename(1, "x"), lambda: runs.tag(1, ["x"])):
        with pytest.raises(HistoryError, match="there is no run 1"):
            act()


def test_purging_forgets_the_records_of_old_runs_and_keeps_their_figures(runs: Runs) -> None:
    runs.add(measured(1000), [End()])
    runs.add(measured(2000), [End()])
    assert runs.purge(1500) == 1
    assert (runs.records(1), len(runs.records(2))) == ((), 1)
    assert runs.get(1).tok_s == 82.5


def test_one_damaged_run_hides_no_other(runs: Runs) -> None:
    runs.add(measured(1))
    runs.add(measured(2))
    sqlite3.connect(runs.path, isolation_level=None).execute("UPDATE runs SET document = '{' WHERE id = 1")
    assert [run.id for run in runs.all()] == [2]
    assert runs.unreadable == (1,)
    with pytest.raises(HistoryError, match="run 1 cannot be read"):
        runs.get(1)
    assert runs.delete([1]) == 1


def test_a_history_of_an_older_specdash_gets_the_new_tables_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    old = sqlite3.connect(path, isolation_level=None)
    for script in MIGRATIONS[:2]:
        for statement in script:
            old.execute(statement)
    old.execute("PRAGMA user_version = 2")
    old.execute("INSERT INTO todos VALUES ('a', 'gpubox', 'look', '', 'open', 1, 1, NULL)")
    old.close()
    runs = Runs(path)
    assert runs.add(measured()).id == 1
    runs.close()
    store = Store(path)
    assert store._db.execute("SELECT title FROM todos").fetchone() == ("look",)
    store.close()


KEPT = (
    b'{"at":1764450000.0,"host":"gpubox","variant":"baseline","launch":"b/1:2","workload":{"url":'
    b'"http://127.0.0.1:30000","concurrency":64},"run":{"concurrency":64,"requests":128,"errors":0,'
    b'"duration_s":61.5,"output_tok_s":2048.5},"fingerprint":{"engine":"sglang"},"a later field":[1]}'
)
"""A document as the first version with runs wrote it (shortened). Never change it."""


def test_a_run_of_the_first_version_is_readable_for_ever(runs: Runs) -> None:
    runs.add(measured())
    sqlite3.connect(runs.path, isolation_level=None).execute("UPDATE runs SET document = ?", (KEPT,))
    run = runs.get(1)
    assert (run.tok_s, run.run.requests, run.trouble) == (2048.5, 128, ())
    assert run.cell == "64 streams, 128 in 128 out, chat"
