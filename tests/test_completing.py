"""What a shell offers: commands, options, and the operator's own words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from specdash.cli import root

PROFILE = """\
[hosts.gpubox]
target = "root@gpubox"
[servers.main]
host = "gpubox"
engine = "sglang"
command = ["x"]
[variants.steps-2]
server = "main"
[variants.steps-3]
server = "main"
"""


def offered(home: Path, line: str) -> list[str]:
    """As bash asks: the words so far, the last one unfinished."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "_SPECDASH_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-m", "specdash"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=home)
    assert said.stderr == ""
    return [row.partition(",")[2] for row in said.stdout.splitlines() if row]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host dgx1 dgx2\nHost *.lab\nHost gpu9\n")
    (tmp_path / "specdash.toml").write_text(PROFILE)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("specdash ki", ["kill"]),
        ("specdash connect gpu", ["gpubox", "gpu9"]),
        ("specdash status d", ["dgx1", "dgx2"]),
        ("specdash restart gpubox --variant ", ["steps-2", "steps-3"]),
        ("specdash bench gpubox --campaign steps-2,steps-", ["steps-2,steps-2", "steps-2,steps-3"]),
        ("specdash runbook gpubox night", ["night-watch"]),
        ("specdash demo --scenario zombie-", ["zombie-live"]),
        ("specdash help tro", ["troubleshooting"]),
        ("specdash connect gpubox --theme specd", ["specdash"]),
    ],
)
def test_a_word_is_completed_by_what_there_is(line: str, words: list[str], home: Path) -> None:
    assert [word for word in offered(home, line) if not word.startswith("specdash-")] == words


def test_a_broken_profile_offers_what_is_left_and_says_nothing(home: Path) -> None:
    (home / "specdash.toml").write_text("[hosts")
    assert offered(home, "specdash connect gpu") == ["gpu9"]
    assert offered(home, "specdash restart x --variant ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_us_back(shell: str) -> None:
    said = CliRunner().invoke(root, ["completion", shell])
    assert said.exit_code == 0
    assert f"_SPECDASH_COMPLETE={shell}_complete" in said.output


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "-n")])
def test_the_shells_themselves_can_read_them(shell: str, check: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(CliRunner().invoke(root, ["completion", shell]).output)
    try:
        said = subprocess.run([shell, check, str(script)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"{shell} is not here")
    assert (said.returncode, said.stderr) == (0, "")
