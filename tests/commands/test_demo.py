"""What the demo keeps for itself, and what it leaves."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from specdash.bench.record import BASELINE
from specdash.commands import demo, sim
from specdash.profile.keys import key_variable
from specdash.session.lessons import place
from specdash.sim.scenarios import SCENARIOS
from specdash.sim.simulate import Simulation
from specdash.tui import files


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    return tmp_path


def test_made_up_runs_go_nowhere_near_the_operators_own_and_are_gone_with_the_demo(tmp_path: Path) -> None:
    with demo.own_state():
        assert place().is_relative_to(tmp_path)
        assert not place().is_relative_to(tmp_path / "mine")
        place().parent.mkdir(parents=True)
        place().write_bytes(b"runs")
        (place().parent / "operations").mkdir()
    assert os.environ["XDG_STATE_HOME"] == str(tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


def test_what_the_operator_saved_stays_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with demo.own_state():
        saved = files.write("evidence.json", b"{}")
        files.write("copied.txt", b"a line")
        place().write_bytes(b"runs")
    assert [path.name for path in saved.parent.iterdir()] == ["evidence.json"]
    assert f"what you saved lies in {saved.parent}: evidence.json" in capsys.readouterr().err


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_story_can_start_the_server_with_and_without_its_draft(scenario: str) -> None:
    host = Simulation(
        target="gpubox",
        ssh_config=Path("c"),
        port=1,
        server_port=30000,
        log=Path("/l"),
        folder=Path("/f"),
        scenario=scenario,
        speed=30.0,
        pid=1,
        _process=None,  # type: ignore[arg-type]
    )
    profile = demo.profile_of(host)
    by_variant = {name: profile.servers[one.server].command for name, one in profile.variants.items()}
    assert set(by_variant) == {BASELINE, "eagle3-3"}
    assert "--speculative-algorithm" not in by_variant[BASELINE]
    assert by_variant["eagle3-3"][: len(by_variant[BASELINE])] == by_variant[BASELINE]
    assert {key_variable(profile, name) for name in profile.servers} == {None}


@pytest.mark.parametrize("command", [demo.command, sim.command])
def test_the_scenarios_are_told_on_eighty_columns_without_a_broken_word(command: click.Command) -> None:
    told = CliRunner().invoke(command, ["--help"], terminal_width=80).output
    lines = told.partition("Scenarios:\n")[2].partition("\n\n")[0].splitlines()
    assert max(map(len, lines)) < 80
    words = " ".join(" ".join(lines).split())
    for name, scenario in SCENARIOS.items():
        assert f"{name} {scenario.about}" in words
