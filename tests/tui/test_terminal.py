"""On a real terminal: it is left as it was found, however the program ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
MOUSE_OFF, CURSOR_ON = b"\x1b[?1000l", b"\x1b[?25h"
PATIENCE_S = 120.0


class Terminal:
    """A program on a pseudo terminal of 100×30."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.said = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.environ.update({"TERM": "xterm-256color", **environment})
                os.chdir(ROOT)
                os.execv(sys.executable, [sys.executable, "-m", *arguments])
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def read_until(self, wanted: bytes | None) -> bytes:
        """Everything said so far, once ``wanted`` is in it; None: until the program has ended."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and (wanted is None or wanted not in self.said):
            if not select.select([self._fd], [], [], 0.1)[0]:
                continue
            try:
                more = os.read(self._fd, 65536)
            except OSError:
                break
            if not more:
                break
            self.said += more
        assert wanted is None or wanted in self.said, self.said[-2000:]
        return self.said

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def wait(self) -> int:
        """The exit code, after all that was said."""
        self.read_until(None)
        return self._ended("it goes on")

    def vanish(self) -> int:
        """The terminal's window is closed: the exit code of the program, which must end by itself."""
        os.close(self._fd)
        self._fd = -1
        return self._ended("it goes on without a terminal")

    def _ended(self, otherwise: str) -> int:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        raise AssertionError(otherwise)

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self._fd >= 0:
            os.close(self._fd)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()


def show(opened: list[Terminal], tmp_path: Path, *arguments: str, **environment: str) -> Terminal:
    terminal = Terminal("tests.tui.stage", *arguments, XDG_STATE_HOME=str(tmp_path), **environment)
    opened.append(terminal)
    return terminal


def restored(said: bytes) -> bool:
    """The last word on each mode is the one that was there before."""
    return all(
        said.rfind(off) > said.rfind(on)
        for on, off in ((ENTER, LEAVE), (b"\x1b[?1000h", MOUSE_OFF), (b"\x1b[?25l", CURSOR_ON))
    )


def test_quitting_restores_the_terminal_and_then_says_that_the_server_goes_on(
    opened: list[Terminal], tmp_path: Path
) -> None:
    terminal = show(opened, tmp_path, "serving")
    terminal.read_until(b"READY")
    assert b"\x1b]0;" in terminal.read_until(b"\x1b]0;gpubox sglang:30000 ready\x07")
    terminal.type(b"q")
    assert terminal.wait() == 0
    assert restored(terminal.said)
    after = terminal.said[terminal.said.rfind(LEAVE) :]
    assert b"specdash let go of root@gpubox; sglang:30000 (pid 4242) goes on" in after


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal_too(opened: list[Terminal], tmp_path: Path, number: int) -> None:
    terminal = show(opened, tmp_path, "serving")
    terminal.read_until(b"READY")
    os.kill(terminal.pid, number)
    assert terminal.wait() == 128 + number
    assert restored(terminal.said)


def test_closing_the_window_ends_the_program_however_busy_it_is(
    opened: list[Terminal], tmp_path: Path
) -> None:
    terminal = show(opened, tmp_path, "serving", "busy")
    terminal.read_until(b"READY")
    assert terminal.vanish() != 0


def test_ctrl_c_leaves_like_q(opened: list[Terminal], tmp_path: Path) -> None:
    terminal = show(opened, tmp_path, "serving")
    terminal.read_until(b"READY")
    terminal.type(b"\x03")
    assert terminal.wait() == 0
    assert restored(terminal.said)


def test_a_crash_restores_the_terminal_and_says_in_one_line_where_the_traceback_is(
    opened: list[Terminal], tmp_path: Path
) -> None:
    terminal = show(opened, tmp_path, "serving", "crash")
    assert terminal.wait() == 1
    assert restored(terminal.said)
    after = terminal.said[terminal.said.rfind(LEAVE) :].decode()
    where = tmp_path / "specdash" / "crash.txt"
    unfolded = " ".join(after.split())
    assert f"specdash: KeyError: 'a bug of ours [/b]'; the traceback is in {where};" in unfolded
    assert "Traceback" not in after
    assert "in crash" in where.read_text()
    assert where.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_dumb_terminal_gets_lines_not_a_screen(opened: list[Terminal], tmp_path: Path, term: str) -> None:
    terminal = show(opened, tmp_path, "stalled", TERM=term)
    said = terminal.read_until(b"ALARM: sglang:30000 stalled")
    terminal.type(b"\x03")
    terminal.wait()
    assert b"\x1b" not in said


def test_plain_lines_end_by_a_signal_with_a_farewell(opened: list[Terminal], tmp_path: Path) -> None:
    terminal = show(opened, tmp_path, "serving", TERM="dumb")
    terminal.read_until(b"found, pid 4242")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.wait() == 128 + signal.SIGTERM
    assert b"goes on" in terminal.said


def test_a_refused_host_in_plain_lines_ends_with_the_code_for_no_connection(
    opened: list[Terminal], tmp_path: Path
) -> None:
    terminal = show(opened, tmp_path, "refused", TERM="dumb")
    assert terminal.wait() == 3
    assert terminal.said.count(b"the host key of gpubox changed") == 1, "it is said once"


def test_no_color_paints_no_colour_at_all(opened: list[Terminal], tmp_path: Path) -> None:
    terminal = show(opened, tmp_path, "stalled", NO_COLOR="1", COLORTERM="truecolor")
    said = terminal.read_until(b"STALLED")
    terminal.type(b"q")
    terminal.wait()
    codes = [code for found in re.findall(rb"\x1b\[([\d;]*)m", said) for code in found.split(b";") if code]
    assert {code for code in codes if int(code) >= 30} == set(), "30 and above are colours"
    assert {b"1", b"2"} <= set(codes), "bold and dim say what colours did"
