"""Which runs on a host were begun here and have nobody left to end them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from specdash.measuring.leftover import Leftovers


def test_a_run_of_a_program_that_is_gone_is_left_and_one_of_ours_is_not(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    ours = Leftovers("gpubox", tmp_path)
    for run in ("ours", "theirs", "ended"):
        ours.note(run)
    Leftovers("other", tmp_path).note("elsewhere")
    for run in ("theirs", "elsewhere", "ended"):
        file = tmp_path / f"{run}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "pid": gone.pid}))
    ours.forget("ended")
    (tmp_path / "broken.json").write_text("{")
    assert list(ours.runs()) == ["theirs"]
    assert list(Leftovers("nowhere", tmp_path / "none").runs()) == []


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    left = Leftovers("gpubox", tmp_path / "file")
    left.note("run")
    left.forget("run")
    assert list(left.runs()) == []
