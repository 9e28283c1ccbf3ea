"""The first line of a command: nothing of it is repeated, and it cannot hold anybody up."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from specdash.errors import SpecdashError
from specdash.localcommand import first_line


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def test_the_first_line_counts_and_stdin_and_the_terminal_are_out_of_reach() -> None:
    program = "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid()); print('more')"
    assert first_line(python(program), "a key") == "'' True"


def test_words_go_to_the_command_as_they_are_and_to_no_shell() -> None:
    assert (
        first_line((*python("import sys; print(sys.argv[1])"), "$HOME; exit 7"), "a key") == "$HOME; exit 7"
    )


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("print('s3cret'); raise SystemExit(3)", "exit status 3, and no key"),
        ("print()", "exit status 0, and no key"),
        ("print('s3cret' * 9999)", "it says more than a key"),
    ],
)
def test_what_is_no_key_is_told_without_its_words(program: str, says: str) -> None:
    with pytest.raises(SpecdashError, match=says) as told:
        first_line(python(program), "a key")
    assert "s3cret" not in str(told.value)


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(SpecdashError, match="no-such-program: No such file or directory"):
        first_line(("no-such-program", "x"), "a key")


def test_one_that_hangs_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "print('half', end='', flush=True)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(SpecdashError, match="no answer within"):
        first_line(python(program), "a key", limit_s=2.0)
    until = time.monotonic() + 60.0
    while note.exists() and _lives(int(note.read_text())):  # else it was ended before it could start one
        assert time.monotonic() < until, "what it had started lives on"
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
