"""Starting things that outlive us: a server, or a command whose result is wanted even over a lost link.

A supervisor is started in a session of its own; the program gets another. The token's folder keeps pid, start
time, boot and exit status. Where a profile says so, systemd, docker or tmux does it in the supervisor's place
or around it.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time

from specdash.agent import managers, procfs, wire
from specdash.agent.census import SUPERVISOR, stat_of
from specdash.agent.records import read_json, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.records import Record

    Json = dict[str, Any]

BEGIN = 15.0
"""Seconds in which a program begins, or it is known why it does not."""
LONGEST_RUN, USUAL_RUN = 3600.0, 60.0
LOOK = 0.03


def launch(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb."""
    how = request.get("how") or "process"
    order = order_of(request, record.token)
    order["boot"] = acts.host.boot_id()
    argv = procfs.redact(order["argv"])
    about = {"how": how, "argv": argv, "log": order["log"], "name": request.get("name")}
    about["unit"] = managers.unit_name(request, record.token) if how == "systemd" else None
    if how in ("process", "tmux"):
        if not order["argv"] or not order["log"]:
            raise wire.BadRequest("launch: a command and a log are needed")
        record.write("launch", about)
        start = start_process if how == "process" else start_in_tmux
        start(record, order, str(request.get("name") or "specdash"))
        answer = begun(acts, record)
    elif how in managers.STARTERS:
        record.write("launch", about)
        pid = managers.STARTERS[how](request, record, order)
        stat = stat_of(acts.host, pid) if pid else None
        noted = {"pid": pid, "start": stat.start if stat else None, "boot": order["boot"]}
        record.write("start", noted)
        answer = _answer(acts, record)
    else:
        raise wire.BadRequest("launch: how is process, systemd, docker or tmux, not %s" % repr(how)[:40])
    record.says = "process %s" % answer["pid"]
    return answer


def run(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb. The command goes on, and its result is kept, when we end meanwhile."""
    limit = float(request.get("limit") or USUAL_RUN)
    if not 0 < limit <= LONGEST_RUN:
        raise wire.BadRequest("run: the limit is at most %d s" % LONGEST_RUN)
    order = order_of(dict(request, log=None), record.token)
    if not order["argv"]:
        raise wire.BadRequest("run: a command is needed")
    order.update(limit=limit, boot=acts.host.boot_id())
    del order["env"]["SPECDASH_RUN"]
    record.write("launch", {"how": "run", "argv": procfs.redact(order["argv"])})
    start_process(record, order)
    begun(acts, record)
    answer = _ended(acts, record, limit + BEGIN)
    record.says = "timed out" if answer["timed_out"] else "exit %s" % answer["exit"]
    return answer


def launched(acts: "Acts", request: "Json") -> "Json":
    """The verb: what is known of a launch by now, whoever began it."""
    record = acts.records.find(request.get("run") or request["token"])
    about = record.read("launch") if record else None
    if record is None or about is None:
        return {"found": False}
    begun, over = record.read("begun"), record.read("exit")
    answer = dict(_answer(acts, record), found=True, argv=about["argv"], exit=None, ended=None)
    answer["error"] = begun["error"] if begun else None
    answer["supervisor"] = record.read("supervisor")
    same_boot = answer["boot"] == acts.host.boot_id()
    pid = answer["pid"]
    answer["alive"] = bool(same_boot and pid and start_of(acts.host, pid) == answer["start"])
    if over:
        answer["exit"] = over["exit"]
        answer["ended"] = acts.host.mtime(os.stat(os.path.join(record.folder, "exit")))
    elif about["how"] == "systemd" and not answer["alive"]:
        answer["exit"] = managers.exit_status(about["unit"])
    return answer


def resumed(acts: "Acts", record: "Record") -> "Json | None":
    """The answer to a launch or command whose agent is gone; None while, or where, there is none."""
    claim, begun = record.read("claim"), record.read("begun")
    if begun is None or claim is None:
        return None
    if begun["error"]:
        answer: "Json" = {"ok": False, "error": _not_begun(begun["error"])}
    elif claim["verb"] in ("launch", "bench"):
        answer = {"ok": True, "value": dict(_answer(acts, record), folder=record.folder)}
    else:
        supervisor = record.read("supervisor")
        while supervisor and start_of(acts.host, supervisor["pid"]) == supervisor["start"]:
            if record.read("exit"):
                break
            time.sleep(LOOK)
        over = record.read("exit")
        if over is None:
            return None
        answer = {"ok": True, "value": dict(over, folder=record.folder)}
    record.settle(answer)
    return answer


def order_of(request: "Json", token: str) -> "Json":
    """What the supervisor is to do. Raises ``wire.BadRequest`` for what cannot be done."""
    argv = request.get("argv") or []
    extra = request.get("env") or {}
    texts = list(argv) + list(extra) + list(extra.values())
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        raise wire.BadRequest("a command and its environment are texts")
    env = dict(os.environ) if request.get("inherit", True) else {}
    order: "Json" = {"argv": list(argv), "log": request.get("log")}
    order["cwd"] = request.get("cwd") or "/"
    if request.get("user"):
        env.update(_as_user(str(request["user"]), order))
    env.update(extra)
    order["env"] = dict(env, SPECDASH_RUN=token)
    return order


def _as_user(name: str, order: "Json") -> "dict[str, str]":
    """Let the order be carried out by another user; returns what a login would set."""
    import pwd

    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise wire.BadRequest("there is no user %s on this host" % name)
    if user.pw_uid != os.geteuid():
        if os.geteuid() != 0:
            raise wire.BadRequest("denied: only root may start something as %s" % name)
        groups = os.getgrouplist(name, user.pw_gid)
        order.update(uid=user.pw_uid, gid=user.pw_gid, groups=groups)
    return {"HOME": user.pw_dir, "USER": name, "LOGNAME": name, "SHELL": user.pw_shell}


def command_line(record: "Record") -> "list[str]":
    """How the supervisor is called; its text is put beside the records first."""
    place = os.path.join(os.path.dirname(record.folder), SUPERVISOR)
    spec = importlib.util.find_spec("specdash.agent.supervisor")
    source = spec.loader.get_source("specdash.agent.supervisor") if spec else None  # type: ignore[union-attr]
    beside = "%s.%s" % (place, record.token)
    with open(beside, "w", encoding="utf-8") as file:
        file.write(source or "")
    os.replace(beside, place)
    return [sys.executable, "-E", "-s", "-S", place, record.folder]


def start_process(record: "Record", order: "Json", name: str = "") -> None:
    """Start a supervisor that has nothing more to do with us."""
    child = subprocess.Popen(
        command_line(record),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(order).encode())
        child.stdin.close()
    except BrokenPipeError:
        raise wire.BadRequest("the supervisor could not be started by %s" % sys.executable)


def start_in_tmux(record: "Record", order: "Json", name: str) -> None:
    """Start a supervisor in a window of the session ``name``, where one can look on."""
    try:
        order["shown"] = os.stat(order["log"]).st_size
    except OSError:
        order["shown"] = 0
    fd = os.open(os.path.join(record.folder, "order"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump(dict(order, show=True), file)
    try:
        managers.open_tmux(name, command_line(record))
    except BaseException:
        os.unlink(os.path.join(record.folder, "order"))
        raise


def begun(acts: "Acts", record: "Record") -> "Json":
    """Wait until the program runs. Raises ``wire.BadRequest`` where it does not."""
    begun = await_note(acts, record, "begun", BEGIN)
    if begun is None:
        raise wire.BadRequest("unfinished: the supervisor has not said anything for %d s" % BEGIN)
    if begun["error"]:
        raise wire.BadRequest(_not_begun(begun["error"]))
    return _answer(acts, record)


def _ended(acts: "Acts", record: "Record", seconds: float) -> "Json":
    over = await_note(acts, record, "exit", seconds)
    if over is None:
        raise wire.BadRequest("unfinished: the command has not ended")
    return over


def await_note(acts: "Acts", record: "Record", name: str, seconds: float) -> "Json | None":
    """What the record's file of that name says, as soon as there is one."""
    deadline = acts.host.monotonic() + seconds
    while acts.host.monotonic() < deadline:
        found = record.read(name)
        if found is not None:
            return found
        time.sleep(LOOK)
    return None


def _answer(acts: "Acts", record: "Record") -> "Json":
    """What the record says about the program."""
    about = record.read("launch") or {}
    path = os.path.join(record.folder, "start")
    start = read_json(path) or {}
    return {
        "token": record.token,
        "pid": start.get("pid"),
        "start": start.get("start"),
        "boot": start.get("boot"),
        "at": acts.host.mtime(os.stat(path)) if start else None,
        "how": about.get("how"),
        "unit": about.get("unit"),
        "log": about.get("log"),
        "folder": record.folder,
    }


def _not_begun(error: str) -> str:
    return "it could not be started: " + error
