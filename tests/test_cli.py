from __future__ import annotations

import importlib
import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specdash import __version__
from specdash.cli import main
from specdash.commands import COMMANDS

HEAVY = ("textual", "asyncssh", "httpx", "rich", "msgspec", "prometheus_client")


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capsys.readouterr()
    return end.value.code, out, err


def imported_by(arguments: list[str]) -> set[str]:
    script = (
        "import sys, contextlib, io\n"
        "from specdash.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({arguments!r})\n"
        "print(*sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_the_front_door_opens_without_the_heavy_furniture(arguments: list[str]) -> None:
    modules = imported_by(arguments)
    assert not modules & set(HEAVY)
    assert not [name for name in modules if name.startswith("specdash.commands.")]


def test_reading_a_log_needs_neither_a_screen_nor_ssh(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("[2026-11-02 11:00:09 TP0] Init parallel begin.\n")
    assert not imported_by(["log", str(log)]) & {"textual", "asyncssh", "httpx", "rich"}


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"], capsys) == (0, f"specdash {__version__}\n", "")


def test_help_lists_every_command_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["--help"], capsys)
    assert code == 0
    for name, sentence in COMMANDS.items():
        assert f"  {name} " in out
        assert sentence.split(";")[0][:40] in " ".join(out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_exists(name: str) -> None:
    assert callable(importlib.import_module(f"specdash.commands.{name}").command)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "No such command 'nope'"),
        (["stauts"], "No such command 'stauts'; did you mean status?"),
        (["--nope"], "No such option"),
        (["log"], "Missing argument"),
        (["log", "x", "--silent-for", "soon"], "--silent-for"),
        (["log", "x", "--silent-for", "-1"], "--silent-for"),
        (["log", "x", "--silent-for", "nan"], "--silent-for"),
        (["log", "x", "--silent-for", "1e308"], "--silent-for"),
        (["connect", "local", "--interval", "nan"], "--interval"),
        (["replay", __file__, "--at", "nan"], "--at"),
        (["replay", __file__, "--speed", "inf"], "--speed"),
        (["sim", "--speed", "nan"], "--speed"),
        (["demo", "--speed", "nan"], "--speed"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_help(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(arguments, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("specdash: ")
    assert err.count("\n") == 1
    assert says in err
    assert "--help shows the usage" in err


@pytest.mark.parametrize("command", ["connect", "watch", "status"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ssh-config", "/no/such/file"], "--ssh-config: there is no file"),
        (["--ssh-config", "/"], "--ssh-config: /: a folder, and a plain file is wanted there"),
        (["--identity", "/no/such/file"], "--identity: there is no file"),
        (["-F", "/no/such/file"], "--ssh-config: there is no file"),
        (["-i", "/no/such/file"], "--identity: there is no file"),
        (["-J", "a,b c"], "has characters that no user or host name has"),
        (["-p", "0"], "--port"),
        (["--jump", "-oProxyCommand=x"], "cannot begin with a dash"),
        (["--jump", "a,b c"], "has characters that no user or host name has"),
    ],
)
def test_an_option_that_names_nothing_is_wrong_usage_and_no_lost_connection(
    command: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run([command, "gpubox", *options], capsys)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_our_own_faults_are_one_line_and_ask_for_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "broken", "x")
    monkeypatch.delenv("SPECDASH_DEBUG", raising=False)
    code, _, err = run(["broken"], capsys)
    assert code == 1
    assert err.count("\n") == 1
    assert "SPECDASH_DEBUG=1" in err
    monkeypatch.setenv("SPECDASH_DEBUG", "1")
    with pytest.raises(ModuleNotFoundError):
        main(["broken"])


@pytest.mark.parametrize(
    "said", ["raise RuntimeError from KeyboardInterrupt()", "os.kill(os.getpid(), signal.SIGINT)"]
)
def test_an_interrupt_while_a_command_is_loaded_is_neither_lost_nor_called_a_fault(
    tmp_path: Path, said: str
) -> None:
    # Before 3.12 Python makes a RuntimeError of one that comes while a class is being made.
    (tmp_path / "slow.py").write_text(f"import os, signal\n{said}\nimport time\ntime.sleep(60)\n")
    script = (
        "import sys, specdash.commands as c\n"
        f"c.__path__.append({str(tmp_path)!r}); c.COMMANDS['slow'] = 'x'; sys.argv[1:] = ['slow']\n"
        "from specdash.start import main; main()"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) in ((-signal.SIGINT, ""), (130, "specdash: interrupted\n"))


@pytest.mark.parametrize("arguments", [["--help"], ["keys"], ["log", os.devnull], ["status", "--help"]])
def test_a_reader_that_leaves_early_gets_no_complaint_and_is_no_trouble(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "specdash", *arguments]
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["keys"], ["log", os.devnull]])
def test_a_full_disk_is_said_in_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [sys.executable, "-m", "specdash", *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (process.returncode, process.stderr) == (1, b"specdash: cannot write: No space left on device\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [(f"log {os.devnull}", 0), ("keys", 0), ("status ''", 2)])
def test_closed_streams_are_nobodys_fault(closed: str, arguments: str, code: int) -> None:
    line = f"'{sys.executable}' -m specdash {arguments} {closed}"
    process = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    assert process.returncode == code, process.stderr
    assert "fault" not in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("arguments", [["runs"], ["keys"], ["config", "path"], ["status", "gpubox"]])
def test_no_home_is_said_as_what_it_is(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    code, _, err = run(arguments, capsys)
    assert (code, err) == (1, "specdash: no home folder is known here (set HOME)\n")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_document_is_whole_whatever_the_terminal_can_show(encoding: str) -> None:
    command = [sys.executable, "-m", "specdash", "keys", "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    told = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
    assert "↓" in told.decode("utf-8")
    assert json.loads(told)["keys"]


def test_a_complaint_cannot_carry_escape_codes(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(["log", "/no\x1b[31m/such\x07file"], capsys)
    assert "\x1b" not in err
    assert "no such file" in err


def test_a_terminal_that_cannot_show_a_glyph_gets_its_answer(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("[2026-11-02 11:00:09 TP0] Init parallel begin.\n")
    command = [sys.executable, "-m", "specdash", "log", str(log)]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    answer = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert answer.returncode == 0
    assert answer.stdout.startswith(b"? starting in dist")
    assert answer.stderr == b""


def test_a_thread_that_never_ends_does_not_keep_the_program_alive() -> None:
    program = (
        "import threading, time, specdash.cli as cli\n"
        "def work(**_):\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    print('said', end='')\n"
        "    return 0\n"
        "cli.root.main = work\n"
        "cli.main([])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout[:4]) == (0, "said")


def test_the_exit_codes_are_in_the_help_and_json_is_not_where_it_means_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = run(["--help"], capsys)[1]
    assert "3 could not connect" in told
    assert "4 refused" in told
    for command in ("connect", "watch"):
        assert "--json" not in run([command, "--help"], capsys)[1]
    assert "--json" in run(["status", "--help"], capsys)[1]
