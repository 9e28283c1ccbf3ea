"""Files that a command writes where the operator said."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from specdash.commands.init import _keep
from specdash.commands.keeping import write
from specdash.errors import SpecdashError


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_part_of_a_file_behind(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    with full_disk(), pytest.raises(SpecdashError, match=r"cannot write .*out.csv: File too large"):
        write(file, "x" * 99)
    assert not file.exists()
    write(file, "whole")
    assert file.read_text() == "whole"


def test_a_full_disk_leaves_no_half_profile_that_the_next_try_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "specdash.toml"
    with full_disk(), pytest.raises(SpecdashError, match="File too large"):
        _keep("x" * 99, str(file), None)
    _keep("whole", str(file), None)
    with pytest.raises(SpecdashError, match="is not overwritten"):
        _keep("another", str(file), None)
    assert file.read_text() == "whole"


def test_a_report_is_for_its_reader_alone(tmp_path: Path) -> None:
    write(tmp_path / "report.html", "secret", private=True)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600
