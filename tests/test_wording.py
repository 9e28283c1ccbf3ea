from __future__ import annotations

import socket
from pathlib import Path

import pytest

from specdash.cli import main
from specdash.tui import keymap, themes
from specdash.wording import named, unnamed


def test_a_name_stands_once_in_front() -> None:
    for words in ("nothing listens", "gpubox: nothing listens", "nothing listens: gpubox"):
        assert named("gpubox", words) == "gpubox: nothing listens"
        assert unnamed("gpubox", words) == "nothing listens"
    assert unnamed("gpubox", "gpubox2: nothing listens") == "gpubox2: nothing listens"


@pytest.mark.parametrize("command", ["status", "kill", "check", "doctor", "restart"])
def test_a_host_that_cannot_be_reached_is_named_once(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (config := tmp_path / "ssh_config").write_text("")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens on it, and nobody else can
        port = str(taken.getsockname()[1])
        with pytest.raises(SystemExit) as end:
            main([command, "root@127.0.0.1", "--port", port, "--ssh-config", str(config)])
    said = capsys.readouterr().err
    assert end.value.code == 3
    assert said.startswith(f"specdash: root@127.0.0.1: nothing listens on 127.0.0.1 port {port}")


def test_a_file_that_cannot_be_read_is_named_once_and_without_a_number(tmp_path: Path) -> None:
    folder = tmp_path / "a-folder.toml"
    folder.mkdir()
    with pytest.raises(themes.ThemeError) as error:
        themes.load_file(folder)
    says = f"{folder}: a folder, and a plain file is wanted there"
    assert [str(error.value), *keymap.load(folder).problems] == [says] * 2
