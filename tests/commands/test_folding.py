from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from specdash.commands.carrying import shown
from specdash.commands.folding import columns, fold, fold_command, tell
from specdash.operations.plan import Plan, Step
from specdash.operations.work import Launch, Manage, Measure, Start

COMMAND = (
    "      python3 -m sglang.launch_server --model-path /models/target --tp 8 --host 127.0.0.1 "
    "--port 30000 --enforce-eager --json '{\"a b\": 1}' -- /a/very/long/path"
)


@pytest.mark.parametrize("room", [40, 79, 80, 120])
def test_a_folded_command_fits_and_is_the_same_command_to_a_shell(room: int) -> None:
    rows = fold_command(COMMAND, room)
    assert shlex.split("\n".join(rows).replace("\\\n", "")) == shlex.split(COMMAND)
    assert all(row.endswith(" \\") for row in rows[:-1])
    assert not rows[-1].endswith("\\")
    assert rows[0].startswith("      python3")
    assert all(row.startswith("        ") for row in rows[1:])

    assert max(map(len, rows)) <= room


def test_a_folded_command_runs_when_it_is_pasted() -> None:
    words = ["--prompt", "two  blanks and 'quotes'", "--tp", "8", *(f"--flag-{n}" for n in range(20))]
    pasted = "\n".join(fold_command(shlex.join(["printf", "%s\\n", *words]), 40))
    assert subprocess.run(["sh", "-c", pasted], check=True, capture_output=True).stdout.decode() == "".join(
        f"{word}\n" for word in words
    )


def test_an_option_stays_with_its_value() -> None:
    assert fold_command("serve --model-path /models/target --port 30000 --eager --tp 8", 34) == [
        "serve \\",
        "  --model-path /models/target \\",
        "  --port 30000 --eager --tp 8",
    ]


def test_a_line_is_broken_between_words_below_those_behind_its_mark() -> None:
    line = "  ✖ draft: its context is shorter: --enforce-eager helps in /models/draft/config.json"
    rows = fold(line, 40)
    assert " ".join(row.strip() for row in rows) == line.strip()
    assert all(len(row) <= 40 for row in rows)
    assert [row[:4] for row in rows[1:]] == ["    "] * (len(rows) - 1)


def test_a_path_for_which_no_line_is_long_enough_stays_whole_where_it_is() -> None:
    path = "/models/" + "x" * 90
    assert fold(f"output to {path} and no further", 40) == [f"output to {path}", "  and no further"]
    assert fold_command(f"cat --from {path} --all", 40) == [f"cat --from {path} \\", "  --all"]


def test_a_command_that_lost_a_secret_in_a_quote_is_folded_as_words() -> None:
    rows = fold_command("serve --key 'it was cut here and so the quote never ends", 30)
    assert len(rows) == 2
    assert not any("\\" in row for row in rows)


def test_without_a_terminal_nothing_is_folded(capsys: pytest.CaptureFixture[str]) -> None:
    tell(f"{COMMAND}\nand more", command=True)
    assert capsys.readouterr().out == f"{COMMAND}\nand more\n"
    assert fold(COMMAND, None) == fold_command(COMMAND, None) == [COMMAND]


def _resize(terminal: int, width: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))


def test_a_terminal_that_does_not_say_its_width_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    master, slave = pty.openpty()
    with os.fdopen(master), os.fdopen(slave, "w") as terminal:
        assert columns(terminal) is None
        _resize(slave, 80)
        assert columns(terminal) == 80


def test_an_error_is_folded_on_a_terminal_and_is_one_line_in_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    name = str(tmp_path / "no such log with blanks in its name and long enough for two lines.log")
    command = [sys.executable, "-m", "specdash", "log", name]
    piped = subprocess.run(command, check=False, capture_output=True, text=True)
    assert piped.stderr.count("\n") == 1

    master, slave = pty.openpty()
    _resize(slave, 60)
    subprocess.run(command, check=False, stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    rows = os.read(master, 65536).decode().splitlines()
    os.close(master)
    assert len(rows) > 1
    assert " ".join(row.strip() for row in rows) == piped.stderr.strip()
    assert all(row.startswith("  ") for row in rows[1:])


def _plan(*steps: Step) -> Plan:
    return Plan(
        id="x",
        kind="restart",
        subject="main",
        target="gpubox",
        host="gpubox",
        boot="b",
        steps=steps,
        made=0.0,
    )


def test_of_a_plan_the_commands_can_be_copied_and_the_rest_is_left_to_whoever_prints_it() -> None:
    argv = tuple(shlex.split(COMMAND))
    start = Start(launch=Launch(name="main", engine="sglang", argv=argv))
    long = "a sentence of a preview that is no command " * 3
    plan = _plan(
        Step(title="start", risk="hard", work=start, preview=(shlex.join(argv), long)),
        Step(
            title="stop", risk="hard", work=Manage(manager="docker", argv=argv), preview=(shlex.join(argv),)
        ),
        Step(
            title="bench",
            risk="soft",
            work=Measure(workload={"command": list(argv)}),
            preview=(shlex.join(argv),),
        ),
        Step(title="load", risk="soft", work=Measure(workload={"url": "x"}), preview=(long,)),
    )
    rows = list(shown(plan, 60))
    assert sum(row.strip().startswith("python3 ") and row.endswith(" \\") for row in rows) == 3
    assert f"      {long}" in rows
    assert all("\\" not in row for row in shown(plan, None))
