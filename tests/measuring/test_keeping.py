"""What a kept run must not hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from specdash.bench.figures import Run
from specdash.bench.record import Measured
from specdash.measuring.keeping import Keeper
from specdash.session.lessons import place

SECRET = "sk-verysecret1234567890abcdef"


def test_no_secret_of_a_command_comes_into_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    complaints: list[str] = []
    keeper = Keeper(complaints.append)
    command = ("bench.sh", f"token={SECRET}", "--api-key", SECRET, "--rate", "3")
    run = Run(concurrency=None, requests=0, errors=0, duration_s=1, output_tok_s=3.0)
    kept = keeper.keep(Measured(at=1.0, host="gpubox", command=command, run=run), ())
    assert kept.command[0::5] == ("bench.sh", "3")
    assert SECRET not in str(kept)
    with sqlite3.connect(place()) as db:
        (document,) = db.execute("SELECT document FROM runs").fetchone()
    assert SECRET.encode() not in document
    assert complaints == []


def test_a_run_on_a_simulated_host_is_marked_so_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    keeper = Keeper(print, tags=("night",))
    run = Measured(
        at=1.0, host="gpubox", run=Run(concurrency=1, requests=1, errors=0, duration_s=1, output_tok_s=3.0)
    )
    made_up = msgspec.structs.replace(run, fingerprint={"simulated": "yes"})
    for one in (run, made_up):
        keeper.keep(one, ())
    assert [set(kept.tags) for kept in keeper.known()] == [{"night"}, {"night", "simulated"}]
