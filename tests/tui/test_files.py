from pathlib import Path

import pytest

from specdash.tui import files


def test_what_could_not_be_written_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = files.write("server.log", b"old")

    def full(_: Path, __: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"the disk of .*state is full: make room there"):
        files.write("server.log", b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]
