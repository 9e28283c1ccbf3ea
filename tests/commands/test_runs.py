"""The kept runs on the command line: listed, shown, compared, exported, forgotten only when asked."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from specdash.bench.events import Request
from specdash.cli import main
from specdash.history.runs import Runs
from specdash.session.lessons import place
from tests.bench.test_table import measured, story
from tests.commands.terminals import Typist, typist

__all__ = ["typist"]

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def said(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return said


@pytest.fixture
def kept(say: Say) -> None:
    runs = Runs(place())
    for run in story("one"):
        fingerprint = {"driver": "580", "speculation": "EAGLE3 3 steps"}
        if run.variant == "baseline":
            del fingerprint["speculation"]
        runs.add(msgspec.structs.replace(run, fingerprint=fingerprint), [Request(n=0, tokens=128)])
    runs.close()


def test_before_the_first_run_it_is_said_how_one_is_made(say: Say) -> None:
    assert say("runs")[::2] == (0, "no run was kept yet: specdash bench makes one\n")
    code, _, err = say("compare")
    assert (code, "no run was kept yet" in err) == (1, True)


def test_a_host_in_the_place_of_what_to_do_is_told_where_it_belongs(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specdash.toml").write_text('[hosts.night]\ntarget = "root@10.0.0.7"\n')
    for host in ("night", "root@10.0.0.9"):
        code, _, err = say("runs", host)
        assert (code, f"specdash runs --host {host}" in err) == (2, True), err
    code, _, err = say("runs", "shwo")
    assert (code, "--host shwo" in err) == (2, False), err


@pytest.mark.usefixtures("kept")
def test_runs_are_listed_shown_named_and_tagged(say: Say) -> None:
    _, out, _ = say("runs")
    assert len(out.splitlines()) == 11
    assert out.splitlines()[1].split()[:1] == ["1"]
    assert say("runs", "rename", "2", "after the patch")[0] == 0
    assert say("runs", "tag", "night", "2", "3")[0] == 0
    _, out, _ = say("runs", "--tag", "night")
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["2", "3"]
    assert "after the patch #night" in out
    _, out, _ = say("runs", "show", "2")
    assert out.startswith("run 2 “after the patch”: eagle3-3 on gpubox")
    assert "speculation  EAGLE3 3 steps" in out
    _, out, _ = say("runs", "show", "2", "--requests")
    assert json.loads(out)["tokens"] == 128
    assert say("runs", "show", "99")[0] == 1


@pytest.mark.usefixtures("kept")
def test_nothing_is_forgotten_without_a_yes(say: Say) -> None:
    code, _, err = say("runs", "delete", "1", "2")
    assert code == 4
    assert err.splitlines()[0] == "forget 2 runs, records and all; nothing brings them back:"
    assert [line.split()[0] for line in err.splitlines()[2:4]] == ["1", "2"]
    assert "delete was not confirmed" in err
    assert len(json.loads(say("runs", "--json")[1])["runs"]) == 10
    assert say("runs", "delete", "1", "2", "--yes")[:2] == (0, "2 of 2 forgotten\n")
    assert len(json.loads(say("runs", "--json")[1])["runs"]) == 8


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(("typed", "left"), [("y\n", 9), ("\n", 10)])
def test_it_is_asked_as_every_other_question_is(
    say: Say, typist: Typist, monkeypatch: pytest.MonkeyPatch, typed: str, left: int
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    typist.types(typed)
    code, _, err = say("runs", "delete", "1")
    assert code == (0 if left == 9 else 4)
    assert "go on? [y/N]: " in err
    assert len(json.loads(say("runs", "--json")[1])["runs"]) == left


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_list_fits_its_terminal_and_leaves_nothing_out(
    say: Say, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    say("runs", "rename", "2", "after the patch of the driver")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = say("runs")[1].splitlines()
    assert max(map(len, lines)) <= columns
    whole = " ".join(" ".join(lines).split())
    assert whole.count("1 stream, 128 in 128 out, chat") == 10
    assert "after the patch of the driver" in whole
    assert (len(lines) == 11) is (columns == 120)


@pytest.mark.usefixtures("kept")
def test_the_document_of_a_run_is_the_contracts(say: Say) -> None:
    document = json.loads(say("runs", "--json")[1])
    assert document["schema"] == 1
    (run, *_) = document["runs"]
    assert {"id", "concurrency", "requests", "errors", "duration_s", "output_tok_s", "ttft_ms", "client"} <= {
        *run
    }
    assert (run["id"], run["variant"], run["tokens_by"], run["trouble"]) == (1, "baseline", "usage", [])


@pytest.mark.usefixtures("kept")
def test_export_is_a_table_or_a_document_a_line(say: Say, tmp_path: Path) -> None:
    say("runs", "rename", "1", "=cmd()")
    rows = list(csv.DictReader(say("runs", "export", "--csv")[1].splitlines()))
    assert (len(rows), rows[0]["tok_s"], rows[0]["name"]) == (10, "82.1", "'=cmd()")
    lines = say("runs", "export", "3", "4")[1].splitlines()
    assert [json.loads(line)["id"] for line in lines] == [3, 4]
    file = tmp_path / "runs.csv"
    assert say("runs", "export", "--csv", "--output", str(file))[1] == ""
    assert file.read_text(encoding="utf-8").count("\n") == 11


@pytest.mark.usefixtures("kept")
def test_compare_says_slower_and_fails_a_pipeline_only_when_asked(say: Say) -> None:
    code, out, _ = say("compare")
    assert (code, "−27.1 % ±1.4  slower\n" in out) == (0, True)
    assert "  speculation  –  →  EAGLE3 3 steps" in out
    assert say("compare", "--fail-if", "slower")[0] == 1
    assert say("compare", "--baseline", "eagle3-3", "--fail-if", "slower")[0] == 0
    document = json.loads(say("compare", "baseline", "eagle3-3", "--json")[1])
    assert document["tables"][0]["rows"][1]["judgement"]["word"] == "slower"
    assert document["differences"][0]["fields"][0]["field"] == "speculation"
    assert say("compare", "--markdown")[1].startswith("**1 stream")


@pytest.mark.usefixtures("kept")
def test_a_claim_is_held_against_what_was_measured(say: Say) -> None:
    assert say("runs", "claim", "gpubox", "94", "--like", "1")[:2] == (0, "kept as run 11\n")
    _, out, _ = say("compare")
    assert "claimed 94.0 tok/s" in out
    assert "not reproduced: outside 81.1–83.7" in out


@pytest.mark.usefixtures("kept")
def test_a_host_of_the_profile_is_the_one_whose_runs_were_kept(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("specdash.toml").write_text('schema = 1\n[hosts.box]\ntarget = "gpubox"\n', encoding="utf-8")
    assert say("runs", "claim", "box", "94", "--like", "1")[0] == 0
    assert "not reproduced: outside 81.1–83.7" in say("compare", "--host", "box")[1]
    assert len(say("runs", "--host", "box")[1].splitlines()) == 12
    assert say("runs", "--host", "gpubox")[1] == say("runs", "--host", "box")[1]


@pytest.mark.usefixtures("kept")
def test_a_claim_alone_makes_no_host_the_one_that_was_measured_last(say: Say) -> None:
    assert say("runs", "claim", "elsewhere", "94")[0] == 0
    assert "slower" in say("compare")[1]


@pytest.mark.usefixtures("kept")
def test_figures_of_a_simulated_host_are_named_so_where_they_are_compared(say: Say) -> None:
    assert "SIMULATED" not in say("compare")[2]
    say("runs", "tag", "simulated", "2")
    assert "SIMULATED" in say("compare")[2]
    assert say("compare", "--markdown")[1].endswith(
        "\n\n**SIMULATED: figures of a simulated host are among these**\n"
    )


@pytest.mark.usefixtures("kept")
def test_only_the_host_that_was_measured_last_is_compared(say: Say) -> None:
    runs = Runs(place())
    runs.add(measured(1, 500.0, host="dgx2", at=1e9))
    runs.close()
    assert "500.0" in say("compare")[1]
    assert "500.0" not in say("compare", "--host", "gpubox")[1]
    assert say("compare", "--host", "nowhere")[0] == 1


@pytest.mark.usefixtures("kept")
def test_the_baseline_is_the_run_that_was_named_and_not_one_like_it_on_another_host(say: Say) -> None:
    runs = Runs(place())
    run = runs.add(measured(1, 500.0, host="dgx2", at=1e9))
    runs.close()
    document = json.loads(say("compare", "1", str(run.id), "--baseline", str(run.id), "--json")[1])
    assert [row["host"] for row in document["tables"][0]["rows"] if row["baseline"]] == ["dgx2"]
    code, _, err = say("compare", "--host", "gpubox", "--baseline", str(run.id))
    assert (code, f"{run.id} is no run of gpubox" in err) == (1, True)


HUGE = "99999999999999999999999"


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("runs", "show", HUGE), "no run has so large a number"),
        (("runs", "delete", "--yes", HUGE), "no run has so large a number"),
        (("runs", "tag", "night", HUGE), "no run has so large a number"),
        (("compare", HUGE), "no run has so large a number"),
        (("compare", "1", "2", "--baseline", ""), "no run is called ''"),
        (("runs", "claim", " ", "5"), "a host or a URL is needed"),
        (("runs", "claim", "h", "5", "--on", "0001-01-01"), "no day on which it can have been"),
        (("runs", "claim", "h", "5", "--on", "9999-12-31"), "no day on which it can have been"),
        (("runs", "export", "--output", "/nonexistent/x"), "cannot write x: there is no folder /nonexistent"),
        (("runs", "export", "--output", "/dev/null/x"), "cannot write x: there is no folder /dev/null"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(say: Say, asked: tuple[str, ...], says: str) -> None:
    code, out, err = say(*asked)
    assert code in (1, 2)
    assert (out, says in err, err.count("\n")) == ("", True, 1)
    assert "fault of specdash" not in err


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    "asked", [("runs",), ("compare",), ("runs", "export"), ("report",), ("compare", "2", "3")]
)
def test_a_run_that_is_left_out_since_it_is_damaged_is_named(say: Say, asked: tuple[str, ...]) -> None:
    sqlite3.connect(place(), isolation_level=None).execute("UPDATE runs SET document = '{' WHERE id = 1")
    assert "run 1 is damaged: specdash runs delete 1 takes it away\n" in say(*asked)[2]
    assert say("runs", "delete", "1", "--yes")[0] == 0
    assert "damaged" not in say(*asked)[2]


@pytest.mark.usefixtures("kept")
def test_none_of_a_host_is_not_none_at_all(say: Say) -> None:
    assert say("runs", "--host", "nowhere")[2] == "no run of nowhere was kept\n"
