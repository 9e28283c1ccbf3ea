"""Benchmarks on this host: the load generator, or a command of the user's own, as a process that outlives us.

It is one file in the token's folder, started by the supervisor, and what it prints goes into ``lines`` there.
So a lost link costs no number: whoever comes next follows the same file from where the last one was. A run
that nobody follows for some minutes ends by itself: no load stays on a server because a laptop was closed.
"""

import importlib.util
import json
import os
import signal
import sys
import threading
import time

from specdash.agent import launch, polls, procfs, signals, wire
from specdash.agent.records import start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.records import Record

    Json = dict[str, Any]

MODULES = """loadgen loadanswer loadconnection loadexchange loadfetch loadhttp loadlane loadloop loadphase
loadplan loadprompts loadscript loadtell""".split()
FILE, LINES, WORKLOAD = "specdash_load.zip", "lines", "workload.json"
MAIN = "import sys\nfrom specdash.agent.loadgen import main\nsys.exit(main())\n"
_packed: "dict[str, bytes]" = {}
MOST = 48 * 1024
"""Bytes of lines in one frame."""
PACE = 0.1
"""Seconds between two looks at the file, and between two full frames: a slow link must not fill with them."""
TOUCH = 5.0
"""Seconds between two signs to the run that somebody listens (``specdash.agent.loadtell.Listened``)."""
PATIENCE = 20.0
"""Seconds in which what was asked to stop may end in order; then it is killed."""
NOTED = 5.0
"""Seconds in which the end of a process is written down by its supervisor, if that lives."""


def bench(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb: start a run. Its lines come to whoever follows it."""
    workload = request["workload"]
    if not isinstance(workload, dict):
        raise wire.BadRequest("bench: a workload is an object")
    path = os.path.join(record.folder, FILE)
    _pack(path)
    kept = os.path.join(record.folder, WORKLOAD)
    record.write(WORKLOAD, workload)
    asked = {
        "argv": [sys.executable, "-E", path, kept],
        "log": os.path.join(record.folder, LINES),
        "env": _key(acts, request),
    }
    order = launch.order_of(asked, record.token)
    del order["env"]["SPECDASH_RUN"]  # it is no part of a server
    order["boot"] = acts.host.boot_id()
    about = {"how": "bench", "argv": procfs.redact(order["argv"]), "log": order["log"]}
    record.write("launch", about)
    launch.start_process(record, order)
    answer = launch.begun(acts, record)
    record.says = "process %s" % answer["pid"]
    return answer


def bench_follow(acts: "Acts", request: "Json") -> "Json":
    """The verb: send the run's lines from this byte on, until it has ended and all were sent."""
    record = acts.records.find(request["run"])
    if record is None or record.read("start") is None:
        raise wire.BadRequest("no such run on this host; it was removed, or the host was restarted")
    offset = int(request.get("offset") or 0)
    serial = acts.follow(record.token)
    thread = threading.Thread(target=_follow, args=(acts, record, offset, serial), name="bench_follow")
    thread.daemon = True
    thread.start()
    return {"run": record.token, "alive": _alive(acts, record), "folder": record.folder}


def bench_stop(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb: end a run in order, so that nothing of it stays on the server."""
    run = acts.records.find(request["run"])
    start = run.read("start") if run else None
    if run is None or start is None:
        raise wire.BadRequest("no such run on this host")
    began = acts.host.monotonic()
    steps = [(0.0, signal.SIGINT), (PATIENCE, signal.SIGKILL)]
    while _alive(acts, run):
        waited = acts.host.monotonic() - began
        if steps and waited >= steps[0][0]:
            signals.send(acts.host, start["pid"], start["start"], steps.pop(0)[1])
        if waited > 2 * PATIENCE:
            raise wire.BadRequest("the load generator (pid %s) does not end" % start["pid"])
        time.sleep(launch.LOOK)
    record.says = "stopped"
    return {"run": run.token, "exit": _exit(acts, run), "killed": not steps}


def _exit(acts: "Acts", record: "Record") -> "int | None":
    """Its exit status, which the supervisor writes a moment after the end; None where that was never seen."""
    return (launch.await_note(acts, record, "exit", NOTED) or {}).get("exit")


def _alive(acts: "Acts", record: "Record") -> bool:
    start = record.read("start") or {}
    pid = start.get("pid")
    return bool(pid and start["boot"] == acts.host.boot_id() and start_of(acts.host, pid) == start["start"])


def _key(acts: "Acts", request: "Json") -> "dict[str, str]":
    """The API key, where the workload names its variable: the request's, ours, or that of the server's main
    process.
    """
    name = request["workload"].get("key_env")
    if name and request.get("key"):
        return {name: str(request["key"])}
    if not name or name in os.environ:
        return {}
    key = polls.server_variable(acts.host, str(request.get("server") or ""), str(name))
    return {name: key} if key else {}


def _pack(path: str) -> None:
    """The generator's modules as one file that Python runs."""
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__main__.py", MAIN)
        archive.writestr("specdash/__init__.py", "")
        archive.writestr("specdash/agent/__init__.py", "")
        for name in MODULES:
            archive.writestr("specdash/agent/%s.pyc" % name, _compiled(name))


def _compiled(name: str) -> bytes:
    """A module as this very Python keeps it: compiling takes half of a start, and here it is done once."""
    import marshal

    if name not in _packed:
        spec = importlib.util.find_spec("specdash.agent." + name)
        source = spec.loader.get_source(spec.name) if spec else None  # type: ignore[union-attr]
        code = compile(source or "", "specdash/agent/%s.py" % name, "exec", dont_inherit=True)
        head = importlib.util.MAGIC_NUMBER + b"\0" * (12 if sys.version_info >= (3, 7) else 8)
        _packed[name] = head + marshal.dumps(code)
    return _packed[name]


def _follow(acts: "Acts", record: "Record", offset: int, serial: int) -> None:
    """Send lines as they come. A later follower of the same run takes over."""
    path = os.path.join(record.folder, LINES)
    touched: "float | None" = None
    while acts.follows(record.token, serial):
        if touched is None or acts.host.monotonic() - touched >= TOUCH:
            touched = acts.host.monotonic()
            _touch(os.path.join(record.folder, WORKLOAD))
        over = not _alive(acts, record)  # before the file is read: then nothing can come after
        lines, offset = _more(path, offset)
        if lines or over:
            frame: "Json" = {"t": "bench", "at": acts.host.now(), "run": record.token, "offset": offset}
            frame.update(events=lines, over=over and not _rest(path, offset))
            if frame["over"]:
                frame["exit"] = _exit(acts, record)
            acts.tell(frame)
            if frame["over"]:
                return
        time.sleep(PACE)


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except OSError:
        pass


def _more(path: str, offset: int) -> "tuple[list[Any], int]":
    """Whole lines from there on, and where they end; a line that is none is told as such."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read(MOST)
            if b"\n" not in data:
                data += file.readline()
    except OSError:
        return [], offset
    end = data.rfind(b"\n") + 1
    return [_event(line) for line in data[:end].split(b"\n")[:-1]], offset + end


def _event(line: bytes) -> "Any":
    try:
        return json.loads(line.decode("utf-8"))
    except ValueError:
        return {"event": "output", "t": 0.0, "line": line[:2000].decode("utf-8", "replace")}


def _rest(path: str, offset: int) -> bool:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return b"\n" in file.read(1 << 20)
    except OSError:
        return False
