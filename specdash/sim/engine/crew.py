"""The processes of the server: ranks, detokenizer, resource tracker, compilers. Real, and asleep.

They are forked, not started anew: eight more interpreters would cost seconds and memory. Each carries the
title that the engine's own process has, is killed with its parent as the engine's is, and waits on a pipe.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from specdash.sim.engine.titles import die_with_parent, own_stat, rename, start_ticks

_COMPILERS: tuple[tuple[str, ...], ...] = (
    ("ninja", "-v", "-C", "/root/.cache/flashinfer/0.6.14/120a/cached_ops/norm", "-f", "build.ninja"),
    (
        "nvcc",
        "--generate-dependencies-with-compile",
        "-gencode=arch=compute_120a,code=sm_120a",
        "-c",
        "norm.cu",
    ),
    ("cicc", "--c++17", "--gnu_version=130300", "-arch", "compute_120a", "-m64", "norm.ii", "-o", "norm.ptx"),
)


class Member(NamedTuple):
    """A process of the crew."""

    pid: int
    start: int
    role: str
    """``TP3``, ``detokenizer``, ``tracker``, ``compiler``, ``helper``."""
    gpu: int | None = None


class Crew:
    """Everything the main process started."""

    def __init__(
        self, tp: int, device: str, held_gpu: int | None = None, *, held_apart: bool = False
    ) -> None:
        self.tp = tp
        self.members: dict[int, Member] = {}
        self._device = device
        """A file that stands for /dev/nvidia-uvm: mapping it marks a CUDA context."""
        self._held_gpu = held_gpu
        self._held_apart = held_apart
        self._pipes: dict[int, int] = {}
        self._reports, self._report = os.pipe()
        self._compilers: list[int] = []

    @property
    def ranks(self) -> list[Member]:
        """The schedulers in the order of their numbers; dead ones too."""
        found = [member for member in self.members.values() if member.role.startswith("TP")]
        return sorted(found, key=lambda member: member.gpu or 0)

    def spawn(self) -> None:
        """Start all of them, under the name that ``multiprocessing`` gives a fresh child."""
        self._fork("tracker", lambda _: _sleep(-1), ["python3", "-B", "-c", _TRACKER])
        for rank in range(self.tp):
            self._fork(f"TP{rank}", lambda pipe, rank=rank: self._rank(pipe, rank), _SPAWNED, gpu=rank)  # type: ignore[misc]
        self._fork("detokenizer", lambda pipe: _serve(pipe, "sglang::detokenizer"), _SPAWNED)
        if self._held_gpu is not None and self._held_gpu < self.tp:
            pid = int.from_bytes(os.read(self._reports, 4), "little")
            self.members[pid] = Member(pid, start_ticks(pid), "helper", self._held_gpu)

    def title(self) -> None:
        """Let each take its own title."""
        for pipe in self._pipes.values():
            os.write(pipe, b"t")

    def compile(self) -> None:
        """Build a kernel: ninja, nvcc and cicc below rank 0."""
        os.write(self._pipes[self.ranks[0].pid], b"c")
        for _ in _COMPILERS:
            pid = int.from_bytes(os.read(self._reports, 4), "little")
            self._compilers.append(pid)
            self.members[pid] = Member(pid, start_ticks(pid), "compiler")

    def compiled(self) -> None:
        """The kernel is built."""
        for pid in self._compilers:
            self.members.pop(pid, None)
        self._compilers.clear()
        os.write(self._pipes[self.ranks[0].pid], b"k")

    def kill(self) -> None:
        """End what the engine's ``kill_process_tree`` ends: children, not what a rank forked off."""
        for member in self.members.values():
            if member.role != "helper" and state_of(member) not in "ZX":
                os.kill(member.pid, signal.SIGKILL)

    def reap(self) -> None:
        """Take the exit status of children that have ended."""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    def _fork(
        self, role: str, live: Callable[[int], None], argv: Sequence[str], gpu: int | None = None
    ) -> None:
        ours, theirs = os.pipe()[::-1]
        pid = os.fork()
        if pid == 0:
            _child(lambda: live(theirs), argv, keep=(theirs, self._report))
        os.close(theirs)
        self._pipes[pid] = ours
        self.members[pid] = Member(pid, start_ticks(pid), role, gpu)

    def _rank(self, pipe: int, rank: int) -> None:
        title = "sglang::scheduler" + (f"_TP{rank}" if self.tp > 1 else "")
        with open(self._device, "rb") as file:  # noqa: PTH123
            context = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        card = os.open(self._device.replace("-uvm", str(rank)), os.O_RDONLY | os.O_CREAT)
        if self._held_gpu == rank:
            self._helper(title, card)
        _serve(pipe, title, compiler=lambda: _compile(self._report))
        context.close()

    def _helper(self, title: str, card: int) -> None:
        """Fork without exec: a process that keeps the card's memory and does not die with its parent."""
        pid = os.fork()
        if pid:
            if self._held_apart:
                os.waitpid(pid, 0)
            return
        if self._held_apart:
            os.setsid()
            if os.fork():
                os._exit(0)
        else:
            rename([title], title)
        os.write(self._report, os.getpid().to_bytes(4, "little"))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.closerange(3, card)
        os.closerange(card + 1, 256)
        _sleep(-1)
        os._exit(0)


_TRACKER = "from multiprocessing.resource_tracker import main;main(36)"
_SPAWNED = (
    "python3",
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=37, pipe_handle=41)",
    "--multiprocessing-fork",
)


def state_of(member: Member) -> str:
    """R, S, D, T, Z as the kernel has it; X for a process that is gone, or whose number another one has."""
    try:
        fields = own_stat(member.pid)
    except OSError:
        return "X"
    return fields[0].decode() if int(fields[19]) == member.start else "X"


def _child(live: Callable[[], None], argv: Sequence[str], keep: Sequence[int] = ()) -> NoReturn:
    """The life of a forked process; it never returns into the parent's program."""
    try:
        die_with_parent()
        rename(argv)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for fd in range(3, 256):
            if fd not in keep:
                with contextlib.suppress(OSError):
                    os.close(fd)
        live()
    finally:
        os._exit(0)


def _serve(pipe: int, title: str, compiler: Callable[[], list[int]] | None = None) -> None:
    """Do as the main process says until it is gone: ``t`` title, ``c`` compile, ``k`` end that."""
    compilers: list[int] = []
    while True:
        word = os.read(pipe, 1)
        if not word:
            return
        if word == b"t":
            rename([title], title, blank_environment=True)
        elif word == b"c" and compiler:
            compilers = compiler()
        elif word == b"k":
            for pid in compilers[:1]:
                os.kill(pid, signal.SIGKILL)  # the others die with their parent
                os.waitpid(pid, 0)


def _compile(report: int) -> list[int]:
    """ninja starts nvcc, which starts cicc: three processes, each the parent of the next."""
    first = os.fork()
    if first == 0:
        for depth, argv in enumerate(_COMPILERS):
            if depth:
                pid = os.fork()
                if pid:
                    break
            die_with_parent()
            rename(argv, argv[0])
            os.write(report, os.getpid().to_bytes(4, "little"))
        _sleep(-1)
        os._exit(0)
    return [first]


def _sleep(pipe: int) -> None:
    """Wait for a signal, for ever."""
    while True:
        signal.pause()
