"""Files that dead ranks have left in shared memory and /tmp.

A file is a leftover when its name is one that engines give, nobody has it open or mapped, and the process in
its name is dead or, where the name has none, no engine runs. Where we may not look into the processes of a
file's owner it is not listed. The names are kept here and not taken from a request: what is removed is what
this page knows.
"""

import os
import re
import stat as modes

from specdash.agent import wire
from specdash.agent.census import ENGINE, Census, title_of
from specdash.agent.processes import user_name
from specdash.agent.records import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.host import Host
    from specdash.agent.patience import Patience
    from specdash.agent.records import Record

    Json = dict[str, Any]

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

NAMES = (
    # Shared memory with the maker's pid in the name: SGLang, loky, torch, CUDA (there in hexadecimal).
    ("shm", modes.S_IFREG, r"sgl_shm_\w+?_(?P<pid>\d+)_\w+", "shared memory of SGLang"),
    ("shm", modes.S_IFREG, r"multi_tokenizer_args_(?P<pid>\d+)", "shared memory of SGLang"),
    ("shm", modes.S_IFREG, r"sem\.loky-(?P<pid>\d+)-\w+", "a semaphore of loky"),
    ("shm", modes.S_IFREG, r"torch_(?P<pid>\d+)_\d+_\d+", "a tensor shared by torch"),
    ("shm", modes.S_IFREG, r"cuda\.shm\.[0-9a-f]+\.(?P<hex>[0-9a-f]+)\.\d+", "shared memory of CUDA"),
    # … and without.
    ("shm", modes.S_IFREG, r"sglang_loads_\w+\.shm", "load figures of SGLang"),
    ("shm", modes.S_IFREG, r"psm_[0-9a-f]{8}", "shared memory of Python's multiprocessing"),
    ("shm", modes.S_IFREG, r"sem\.mp-\w{8}", "a semaphore of Python's multiprocessing"),
    ("shm", modes.S_IFREG, r"nccl-\w{6}", "shared memory of NCCL"),
    # Sockets by which the ranks talk: vLLM's and SGLang's, never removed by them.
    ("tmp", modes.S_IFSOCK, UUID, "a socket of vLLM"),
    ("tmp", modes.S_IFSOCK, r"tmp[a-z0-9_]{8}", "a socket of SGLang"),
    ("tmp", modes.S_IFREG, r"vllm_dist_[0-9a-f]{32}", "vLLM's meeting point of ranks"),
)
"""Where, what kind of file, its name, what it is. Names as seen after real runs of SGLang and vLLM."""

PATTERNS = [(place, kind, re.compile(name), what) for place, kind, name, what in NAMES]

SHARED = "others may use it whom we cannot see from inside this container: look from the host"
FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The machine's own process table (PROC_PID_INIT_INO in include/linux/proc_ns.h)."""
CLOSED_TO_ALL = frozenset(
    "sshd sshd-session ssh-agent gpg-agent (sd-pam) systemd su sudo login dbus-daemon gnome-keyring-d".split()
)
"""Programs that let nobody look into them, their own user included, and have nothing to do with engines."""
MOST = 1000
"""Files that one answer names: dead ranks of a month may have left tens of thousands."""
YOUNG = 10.0
"""Seconds for which a file may not be in anybody's hands yet."""


def leftovers(acts: "Acts", request: "Json") -> "Json":
    """The verb."""
    patience = acts.patience()
    files, kept = Search(acts, patience).found()
    patience.close()
    size = sum(file["size"] for file in files)
    return {"files": files[:MOST], "bytes": size, "kept": kept[:MOST], "more": max(0, len(files) - MOST)}


def remove(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb: removes what is a leftover at this moment, and nothing else."""
    wanted = request["paths"]
    if not isinstance(wanted, list) or not all(isinstance(path, str) for path in wanted):
        raise wire.BadRequest("remove: paths are a list of names")
    patience = acts.patience()
    sizes = {file["path"]: file["size"] for file in Search(acts, patience).found()[0]}
    patience.close()
    files = []
    for path in wanted:
        result = "not a leftover (any more)"
        if path in sizes:
            try:
                os.unlink(path)
                result = "removed"
            except OSError as error:
                result = in_words(error)
        files.append({"path": path, "result": result, "size": sizes.get(path, 0)})
    removed = [file for file in files if file["result"] == "removed"]
    record.says = "removed %d of %d" % (len(removed), len(files))
    return {"files": files}


class Search(object):
    """One search, with what it has to know about the living."""

    def __init__(self, acts: "Acts", patience: "Patience") -> None:
        self._host = acts.host
        self._patience = patience
        self._census = Census(acts.host, acts.records)
        self.notes: "list[Json]" = []
        self._used: "set[tuple[int, int]]" = set()
        self._closed_uids: "set[int]" = set()
        """Users into some of whose processes we could not look."""
        self._networks = {"": acts.host.proc + "/self"}
        """A process of each network namespace: a socket's path is known only in its own."""
        self._engine: "int | None" = None

    def found(self) -> "tuple[list[Json], list[Json]]":
        """Leftovers, and files of such names that are not (with the reason)."""
        candidates = self._candidates()
        if candidates:
            self._look_at_processes()
        bound = {path for folder in self._networks.values() for path in _bound_sockets(folder)}
        files: "list[Json]" = []
        kept = list(self.notes)
        for path, status, match, what in candidates:
            why_not = self._in_use(path, status, bound) or self._maker_lives(match)
            if why_not:
                kept.append({"path": path, "why": why_not})
                continue
            pid = _maker(match)
            files.append(
                {
                    "path": path,
                    "kind": "socket" if modes.S_ISSOCK(status.st_mode) else "file",
                    "size": status.st_blocks * 512 if modes.S_ISREG(status.st_mode) else 0,
                    "age": round(max(0.0, self._host.now() - self._host.mtime(status)), 1),
                    "uid": status.st_uid,
                    "user": user_name(status.st_uid),
                    "pid": pid,
                    "why": "%s; %s" % (what, "process %d is dead" % pid if pid else "no engine runs"),
                }
            )
        return files, kept

    def _candidates(self) -> "list[tuple[str, os.stat_result, re.Match[str], str]]":
        """Files of such names."""
        found = []
        for place, folder in sorted(self._host.leftover_folders().items()):
            if not is_ours_alone(self._host, folder):
                self.notes.append({"path": folder, "why": SHARED})
                continue
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            for name in names:
                for where, kind, pattern, what in PATTERNS:
                    match = pattern.fullmatch(name) if where == place else None
                    if match is None:
                        continue
                    path = os.path.join(folder, name)
                    try:
                        status = os.lstat(path)
                    except OSError:
                        continue
                    if modes.S_IFMT(status.st_mode) == kind:
                        found.append((path, status, match, what))
        return found

    def _look_at_processes(self) -> None:
        """What files are in use, whether an engine runs, and whose processes stay closed to us."""
        for pid, stat in self._census.stats.items():
            folder = "%s/%d" % (self._host.proc, pid)
            runs = stat.state not in "ZX" and pid not in self._census.ours and self._engine is None
            if runs and ENGINE.search(title_of(self._host, self._patience, pid, stat)):
                self._engine = pid
            try:
                self._used |= self._patience.call(_files_of, folder)
                self._networks.setdefault(os.readlink(folder + "/ns/net"), folder)
            except (FileNotFoundError, ProcessLookupError):
                pass
            except OSError:
                if pid != 1 and stat.comm not in CLOSED_TO_ALL:
                    self._closed_uids.add(_owner_of(folder))

    def _in_use(self, path: str, status: os.stat_result, bound: "set[str]") -> "str | None":
        if self._host.now() - self._host.mtime(status) < YOUNG:
            return "a few seconds old"
        if path in bound:
            return "a process listens there"
        if (status.st_dev, status.st_ino) in self._used:
            return "a process has it open"
        if status.st_uid in self._closed_uids or (os.geteuid() != 0 and status.st_uid != os.geteuid()):
            return "not all processes of %s could be looked into" % user_name(status.st_uid)
        return None

    def _maker_lives(self, match: "re.Match[str]") -> "str | None":
        pid = _maker(match)
        if pid is not None:
            return "process %d lives" % pid if pid in self._census.stats else None
        return "an engine runs (process %d)" % self._engine if self._engine else None


def _maker(match: "re.Match[str]") -> "int | None":
    """The pid in a file's name."""
    groups = match.groupdict()
    if groups.get("hex"):
        return int(groups["hex"], 16)
    return int(groups["pid"]) if groups.get("pid") else None


def _files_of(folder: str) -> "set[tuple[int, int]]":
    """Device and inode of each file that a process has open or mapped. Raises PermissionError."""
    used = set()
    for name in os.listdir(folder + "/fd"):
        path = "%s/fd/%s" % (folder, name)
        try:
            if os.readlink(path).startswith("/"):
                found = os.stat(path)
                used.add((found.st_dev, found.st_ino))
        except OSError:
            continue
    with open(folder + "/maps", "rb") as file:
        for line in file:
            fields = line.split(None, 5)
            if len(fields) > 5 and fields[4] != b"0":
                major, minor = fields[3].split(b":")
                used.add((os.makedev(int(major, 16), int(minor, 16)), int(fields[4])))
    return used


def _owner_of(folder: str) -> int:
    try:
        return os.stat(folder).st_uid
    except OSError:
        return -1  # gone meanwhile


def _bound_sockets(folder: str) -> "set[str]":
    """Paths of the sockets that some process in the network namespace of this one is bound to."""
    try:
        with open(folder + "/net/unix", errors="replace") as file:
            return {line.split(None, 7)[7].strip() for line in file if len(line.split(None, 7)) > 7}
    except OSError:
        return set()


def is_ours_alone(host: "Host", folder: str) -> bool:
    """Whether whoever uses this folder is among the processes that we see.

    In a container it may be the host's or another container's, too: unless it lies on the container's own
    root, or is the private ``shm`` that docker and containerd mount.
    """
    try:
        if os.readlink(host.proc + "/self/ns/pid") == FIRST_PID_NAMESPACE:
            return True
        with open(host.proc + "/self/mounts", errors="replace") as file:
            mounts = [line.split(None, 2)[:2] for line in file]
    except OSError:
        return True
    real = os.path.realpath(folder)
    above = [mount for mount in mounts if (real + "/").startswith(mount[1].rstrip("/") + "/")]
    source, point = max(above, key=lambda mount: len(mount[1]))
    return point == "/" or source == "shm"
