"""The file of a plan or a run: each line whole, whatever the disk has room for."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from specdash.operations.journal import LineFile


def test_a_line_for_which_the_disk_has_only_half_the_room_is_not_taken_for_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    file = LineFile(path, {"plan": "kill"}, "busy", 9)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, hard))
    try:
        with pytest.raises(OSError, match="No space left"):
            file.write({"step": 0, "is": "active"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        file.close()
    again = LineFile(path, {"plan": "another"}, "busy", 9)
    again.write({"step": 1})
    again.write({"step": 2})
    again.close()
    first, _torn, *rest = path.read_text().splitlines()
    assert [json.loads(line) for line in (first, *rest)] == [{"plan": "kill"}, {"step": 1}, {"step": 2}]
