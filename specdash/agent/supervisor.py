"""Starts one program, outlives whoever asked for it, and keeps its exit status. A program of its own.

Its text is written into the folder of records and run there as ``specdash_supervisor.py FOLDER``; so it
imports nothing of ours. The order comes on stdin (or, in a terminal of tmux, as a file that is removed at
once), since the environment in it may hold secrets. In FOLDER it writes:

* ``supervisor`` and ``start``: its own pid and start time, and the program's, before the program begins,
* ``begun``: the program runs, or why it could not,
* ``exit``: Python's return code (negative: the signal), and the output where that was asked for.

It adopts what its descendants leave behind: whatever a server has forked off, however often, stays below it.
It ends when no child is left.
"""

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

PR_SET_CHILD_SUBREAPER = 36
MOST_OUTPUT = 64 * 1024
GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for a command that outlasts its limit."""
TICK = 0.1
DRAIN = 0.3
"""Seconds for which the output of a command that has ended is still waited for."""


def note(folder: str, name: str, content: "Json") -> None:
    """Put a file in place whole. The folder may have been cleaned away by somebody meanwhile."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(content, file)
    os.rename(path + ".new", path)


def start_time(pid: int) -> int:
    """Field 22 of /proc/PID/stat, counted after the last parenthesis."""
    with open("/proc/%d/stat" % pid, "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, where the kernel can do that."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except Exception:
        pass  # orphans then go to the first process, as ever


def take_order(folder: str) -> "Json":
    """What to do. Raises ValueError where whoever asked has ended before saying all of it."""
    path = os.path.join(folder, "order")
    if os.path.exists(path):
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
    else:
        data = b"".join(iter(lambda: os.read(0, 65536), b""))
    order: "Json" = json.loads(data.decode("utf-8"))
    return order


class Supervisor(object):
    """One program and what became of it."""

    def __init__(self, folder: str, order: "Json") -> None:
        self.folder = folder
        self.order = order
        self.pid = 0
        self.code: "int | None" = None
        self.output = b""
        self.dropped = 0
        self.timed_out = False
        self._shown = 0

    def run(self) -> None:
        """Start the program and stay until nothing of it is left."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        adopt_orphans()
        me = os.getpid()
        note(self.folder, "supervisor", {"pid": me, "start": start_time(me)})
        pipe = self._start()
        if self.code is None and self.order.get("limit"):
            self._capture(pipe)
        elif self.order.get("show"):
            self._show()
        else:
            while self._reap():
                signal.sigwait([signal.SIGCHLD])

    def _start(self) -> int:
        """Fork; the program begins only after its pid is on record. Returns its output's reading end."""
        go_read, go_write = os.pipe()
        bad_read, bad_write = os.pipe()
        out_read, out_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(go_write)
                become(self.order, go_read, out_write)
            except OSError as error:
                words = "%s: %s" % (error.strerror, error.filename) if error.filename else str(error)
                os.write(bad_write, words.encode("utf-8", "replace"))
            finally:
                os._exit(127)
        for fd in (go_read, bad_write, out_write):
            os.close(fd)
        note(
            self.folder, "start", {"pid": self.pid, "start": start_time(self.pid), "boot": self.order["boot"]}
        )
        os.write(go_write, b"!")
        os.close(go_write)
        bad = b"".join(iter(lambda: os.read(bad_read, 4096), b""))
        os.close(bad_read)
        if bad:
            self._note_exit(os.waitpid(self.pid, 0)[1])
        note(self.folder, "begun", {"error": bad.decode("utf-8", "replace") or None})
        return out_read

    def _reap(self) -> bool:
        """Take what has ended; False when no child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.pid:
                    self._note_exit(status)
        except ChildProcessError:
            return False

    def _note_exit(self, status: int) -> None:
        self.code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if not self.order.get("limit"):
            note(self.folder, "exit", {"exit": self.code})

    def _capture(self, pipe: int) -> None:
        """A command with a time limit: keep the end of its output; end all of it when it takes too long."""
        began = time.monotonic()
        steps = [(began + self.order["limit"], signal.SIGTERM)]
        steps.append((steps[0][0] + GRACE, signal.SIGKILL))
        quiet_since = None
        while True:
            now = time.monotonic()
            if self.code is None and steps and now > steps[0][0]:
                self.timed_out = True
                self._signal_all(steps.pop(0)[1])
            more = self._take_output(pipe)
            self._reap()
            if self.code is not None:
                quiet_since = quiet_since or now
                if more is None or now - quiet_since > DRAIN:
                    break
            elif more is None:
                time.sleep(TICK / 2)
        while self.timed_out and self._reap():  # what was forked off comes to us bit by bit
            self._signal_all(signal.SIGKILL)
            time.sleep(TICK / 10)
        words = {
            "exit": self.code,
            "timed_out": self.timed_out,
            "seconds": round(time.monotonic() - began, 3),
        }
        text = self.output.decode("utf-8", "replace")
        note(self.folder, "exit", dict(words, output=text, truncated=self.dropped > 0))

    def _take_output(self, pipe: int) -> "bool | None":
        """Whether something came; None at the end."""
        if not select.select([pipe], [], [], TICK / 2)[0]:
            return False
        data = os.read(pipe, 65536)
        if not data:
            return None
        self.output += data
        over = len(self.output) - MOST_OUTPUT
        if over > 0:
            self.dropped += over
            self.output = self.output[over:]
        return True

    def _signal_all(self, number: int) -> None:
        """The command's group and, since we adopt them, whatever has left it."""
        for target in [-self.pid] + children():
            send(target, number)

    def _show(self) -> None:
        """In a terminal: what the log gets, and its Ctrl-C handed on to the program."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
        wanted = [signal.SIGCHLD, signal.SIGINT, signal.SIGTERM]
        self._shown = self.order.get("shown", 0)
        while self._reap():
            self._print_log()
            came = signal.sigtimedwait(wanted, 2 * TICK)
            if came is not None and came.si_signo != signal.SIGCHLD and self.code is None:
                self._signal_all(came.si_signo)
        self._print_log()

    def _print_log(self) -> None:
        try:
            with open(self.order["log"], "rb") as file:
                file.seek(self._shown)
                data = file.read(1 << 20)
            self._shown += len(data)
            os.write(1, data)
        except OSError:
            pass  # the terminal is gone, the log stays


def send(target: int, number: int) -> None:
    """A signal to a process or group that may be gone."""
    try:
        os.kill(target, number)
    except OSError:
        pass


def children() -> "list[int]":
    """Our own children at this moment."""
    try:
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def become(order: "Json", go: int, output: int) -> None:
    """Turn this fork into the program. Raises OSError; returns only where nobody said go."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if not os.read(go, 1):
        return
    if order.get("groups") is not None:
        os.setgroups(order["groups"])
        os.setgid(order["gid"])
        os.setuid(order["uid"])
    os.chdir(order["cwd"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    if order.get("log"):
        output = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd, place in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(fd, place)
    # Every other descriptor of ours is closed by the exec: Python opens them so.
    os.execvpe(order["argv"][0], order["argv"], order["env"])


if __name__ == "__main__":
    try:
        wish = take_order(sys.argv[1])
    except ValueError:
        sys.exit(3)
    Supervisor(sys.argv[1], wish).run()
