"""Engines that a user teaches: their markers, titles and failure signatures; a bad file harms nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specdash.engines.common import default_book, teach
from specdash.intake import ownengines, rules
from specdash.monitor.logverdict import judge_log
from specdash.monitor.observe import start
from specdash.monitor.reader import begin, finish, read

TOY = """
name = "toy"
title = "Toy"
include = ["uvicorn"]
[detect]
lines = ['^toy> ']
[lines]
prefix = '^toy> '
[processes]
main = '(?:^|/)toy-serve\\b'
[[marker]]
name = "load"
seek = ["load now"]
match = '^load now$'
phase = "weights"
event = "begin"
examples = ["toy> load now"]
[[signature]]
kind = "root"
key = "toy_battery"
seek = ["the battery"]
line = "the battery is empty"
usually = "weights"
examples = ["the battery is empty"]
[diagnosis.toy_battery]
says = "the toy has no power"
severity = "error"
remedy = ["put a battery in"]
"""


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder; what was taught is forgotten afterwards."""
    monkeypatch.setattr(ownengines, "folder", lambda: tmp_path)
    rules.default_rules.cache_clear()
    yield tmp_path
    teach({})
    rules.default_rules.cache_clear()


def test_a_taught_engine_is_read_and_its_failures_are_diagnosed(engines: Path) -> None:
    (engines / "toy.toml").write_text(TOY)
    known = rules.default_rules()
    assert not known.problems
    assert [titles.engine for titles in known.titles if titles.main.match("toy-serve --port 1")] == ["toy"]
    log = b"toy> load now\ntoy> the battery is empty\n"
    reading = finish(read(begin(known.grammars), log, 1.0))
    judged = judge_log(reading, known.limits, default_book(), None, None)
    assert (reading.engine, reading.phase) == ("toy", "weights")
    assert [(one.key, one.summary, one.remedy) for one in judged.diagnoses if one.root] == [
        ("toy_battery", "the toy has no power", ("put a battery in",))
    ]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (TOY.replace("event =", "evnet ="), "line 16: marker[0]: unknown key evnet"),
        (TOY.replace('name = "toy"', "name = "), "line 2: no value that TOML knows"),
        (TOY.replace("[diagnosis.toy_battery]", "[diagnosis.other]"), "toy_battery"),
        (TOY.replace('seek = ["the battery"]', ""), "needs seek"),
    ],
)
def test_a_bad_file_is_told_of_with_its_line_and_the_others_count(engines: Path, bad: str, says: str) -> None:
    (engines / "bad.toml").write_text(bad)
    (engines / "toy.toml").write_text(TOY.replace("toy_battery", "toy_fuse"))
    known = rules.default_rules()
    (problem,) = known.problems
    assert problem.startswith(str(engines / "bad.toml"))
    assert says in problem
    assert known.grammars[0].name == "toy"
    assert "toy_fuse" in default_book().meanings
    assert start("box", known).picture.notes == (problem,)
