"""Reading /proc: one function a file, each one plain values out of bytes."""

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = float(os.sysconf("SC_CLK_TCK"))

PF_KTHREAD = 0x00200000
"""The flag of kernel threads (include/linux/sched.h)."""

SHORT = 4096
LONGEST_ARGV = 16 * 1024
"""Characters of a command line that are sent; SGLang's are near 1,000."""

SECRET = "(?:api[-_]?keys?|token|passw(?:or)?d|passphrase|secret(?:[-_]?key)?|credentials?|basic[-_]auth)"
SECRET_OPTION = re.compile(r"--?[\w-]*" + SECRET + r"$", re.I)
# An option begins a word: whoever looks for one at each dash walks the square of a long argument.
SECRET_INSIDE = re.compile(
    r"((?:^|(?<=[\s'\"]))--?[\w-]*" + SECRET + r"[= ]|" + SECRET + r"=)(?!-)('[^']*'|\"[^\"]*\"|[^\s'\"]+)",
    re.I,
)
SECRET_NAME = re.compile(SECRET + "$", re.I)
REDACTED = "<redacted>"


def read(path: str, limit: int = 1 << 20) -> bytes:
    """The bytes of one small file of /proc. What is shorter than a page comes in one read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = more = os.read(fd, SHORT)
        while len(more) == SHORT or (len(data) > SHORT and more):
            more = os.read(fd, limit)
            data += more
        return data[:limit]
    finally:
        os.close(fd)


class Stat(object):
    """``/proc/PID/stat`` (proc(5)): fields are counted after the last ``)``, a name may hold anything."""

    __slots__ = ("comm", "cpu_s", "kernel", "pgid", "ppid", "rss_mib", "sid", "start", "state", "threads")

    def __init__(self, data: bytes) -> None:
        end = data.rindex(b")")
        fields = data[end + 2 :].split()
        self.comm = data[data.index(b"(") + 1 : end].decode("utf-8", "replace")
        self.state = fields[0].decode("ascii", "replace")
        self.ppid = int(fields[1])
        self.pgid = int(fields[2])
        self.sid = int(fields[3])
        self.kernel = bool(int(fields[6]) & PF_KTHREAD)
        self.cpu_s = (int(fields[11]) + int(fields[12])) / TICKS
        self.threads = int(fields[17])
        self.start = int(fields[19])
        self.rss_mib = int(fields[21]) * PAGE >> 20


def redact(argv: "list[str]") -> "list[str]":
    """The command line without API keys, tokens and passwords: a recording must never hold one.

    An option may take several (vLLM's ``--api-key A B``): all words up to the next option go. Only the
    first may begin with a dash and be a key all the same.
    """
    shown = []
    hide, dash = False, "--"
    for argument in argv:
        option = SECRET_OPTION.match(argument) is not None
        if hide and not argument.startswith(dash):
            shown.append(REDACTED)
            dash = "-"
            continue
        hide, dash = option, "--"
        shown.append(argument if option else SECRET_INSIDE.sub(r"\1" + REDACTED, argument))
    return shown


def arguments(data: bytes) -> "list[str]":
    """A command line. A process title is one argument: what it has overwritten is NULs or blanks."""
    parts = data.rstrip(b"\0 ").split(b"\0")
    argv = [part.decode("utf-8", "surrogateescape") for part in parts] if parts != [b""] else []
    room = LONGEST_ARGV
    for index, argument in enumerate(argv):
        room -= len(argument) + 1
        if room < 0:
            return argv[:index] + ["…"]
    return argv


def environment(data: bytes, wanted: "list[Pattern[str]]") -> "tuple[dict[str, str], bool]":
    """The chosen variables, and whether a process title has overwritten the front of the environment.

    What setproctitle overwrites is left as NULs (5,554 of 6,041 bytes in an SGLang scheduler), so a
    variable that is not seen in such an environment may well have been there.
    """
    entries = data.split(b"\0")
    blanked = bool(data) and b"=" not in entries[0]
    found = {}
    for entry in entries:
        name, equals, value = entry.partition(b"=")
        if not equals:
            continue
        key = name.decode("utf-8", "surrogateescape")
        if any(pattern.search(key) for pattern in wanted):
            secret = SECRET_NAME.search(key)
            found[key] = REDACTED if secret else value.decode("utf-8", "surrogateescape")[:4096]
    return found, blanked


def status(data: bytes) -> "tuple[int, int | None]":
    """Effective uid, and the pid inside the process's own namespace where that is another one."""
    uid = 0
    inner = None
    for line in data.split(b"\n"):
        if line.startswith(b"Uid:"):
            uid = int(line.split()[2])
        elif line.startswith(b"NSpid:"):
            pids = line.split()[1:]
            inner = int(pids[-1]) if len(pids) > 1 else None
    return uid, inner


def cgroup(data: bytes) -> "str | None":
    """Where whoever manages the process has put it: not at the root, and not loosely in a slice.

    Job managers use the memory controller's tree; where that is not divided, systemd's hierarchy tells.
    """
    paths = {}
    for line in data.decode("utf-8", "replace").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            paths[parts[1]] = parts[2]
    for controller in ("memory", "", "name=systemd", "pids"):
        path = paths.get(controller, "/")
        if path != "/" and not path.endswith(".slice"):
            return path
    return next(iter(paths.values()), None)


def read_bytes(data: bytes) -> "int | None":
    """Bytes fetched from storage so far, from ``/proc/PID/io``."""
    match = re.search(rb"^read_bytes: (\d+)", data, re.M)
    return int(match.group(1)) if match else None


def maps_hold(path: str, device: bytes) -> bool:
    """Whether a process has this device mapped. The file has thousands of lines for a CUDA process."""
    tail = b""
    device += b"\n"
    with open(path, "rb", 0) as file:
        while True:
            data = file.read(1 << 16)
            if not data:
                return False
            if device in tail + data:
                return True
            tail = data[-len(device) :]


CONTAINERS = (
    (re.compile(r"/docker[-/]([0-9a-f]{12})[0-9a-f]{52}"), "docker:"),
    (re.compile(r"libpod-([0-9a-f]{12})[0-9a-f]{52}"), "podman:"),
    (re.compile(r"kubepods.*?([0-9a-f]{12})[0-9a-f]{52}"), "kubernetes:"),
    (re.compile(r"cri-containerd-([0-9a-f]{12})[0-9a-f]{52}"), "containerd:"),
    (re.compile(r"/lxc(?:\.payload)?[./]([^/]+)"), "lxc:"),
    (re.compile(r"/machine\.slice/([^/]+)\.scope"), "machine:"),
)
"""How container managers name the cgroup of what they started."""


def container_of(cgroup: str) -> "str | None":
    """Whose container a control group belongs to."""
    for pattern, kind in CONTAINERS:
        match = pattern.search(cgroup)
        if match:
            return kind + match.group(1)
    return None
