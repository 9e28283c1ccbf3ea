"""Starting a server through what manages it on this host: systemd, docker, tmux. Never through a shell."""

import os
import re
import signal
import subprocess
import time

from specdash.agent import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.records import Record

    Json = dict[str, Any]

LIMIT = 60.0
PID_LIMIT = 5.0


def outcome(argv: "list[str]", limit: float) -> "tuple[int, str, str]":
    """A command's exit status and what it prints. Raises OSError and ``subprocess.TimeoutExpired``."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, cwd="/", start_new_session=True
    )
    with child:
        try:
            out, said = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            # With all that it has started; the pipes are not waited for, since some may have left its group.
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return child.returncode, out.decode("utf-8", "replace").strip(), said.decode("utf-8", "replace").strip()


def ask(argv: "list[str]", limit: float = LIMIT) -> str:
    """What a manager's command prints. Raises ``wire.BadRequest`` with its own words where it fails."""
    try:
        status, out, said = outcome(argv, limit)
    except OSError as error:
        raise wire.BadRequest("%s: %s" % (argv[0], error.strerror))
    except subprocess.TimeoutExpired:
        raise wire.BadRequest("%s: no answer for %d s" % (argv[0], limit))
    if status:
        raise wire.BadRequest("%s: %s" % (argv[0], said[-2000:] or "exit status %d" % status))
    return out


def unit_name(request: "Json", token: str) -> str:
    """The unit that exists already, or a name for one that only lives as long as the server."""
    name = str(request.get("name") or "server")
    if not request.get("argv"):
        return name
    return "specdash-%s-%s.service" % (re.sub(r"[^A-Za-z0-9_.-]", "-", name), token[:8])


def start_unit(request: "Json", record: "Record", order: "Json") -> int:
    """systemd: the unit's main process."""
    unit = unit_name(request, record.token)
    if not order["argv"]:
        ask(["systemctl"] + _scope() + ["start", "--", unit])
        return _main_pid(unit)
    path = os.path.join(record.folder, "environment")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(environment_file(order["env"]))
    properties = [
        "KillMode=control-group",
        "RemainAfterExit=yes",  # else its exit status is forgotten at once
        "WorkingDirectory=" + order["cwd"],
        "EnvironmentFile=" + path,
    ]
    if order["log"]:
        properties += ["StandardOutput=append:" + order["log"], "StandardError=append:" + order["log"]]
    argv = ["systemd-run"] + _scope() + ["--unit=" + unit, "--service-type=exec"]
    argv += ["--property=" + value for value in properties]
    if order.get("uid") is not None:
        argv += ["--uid=%d" % order["uid"], "--gid=%d" % order["gid"]]
    try:
        ask(argv + ["--"] + [part.replace("$", "$$") for part in order["argv"]])
        return _main_pid(unit)
    finally:
        os.unlink(path)  # it may hold secrets, and was read when the unit began


def start_container(request: "Json", record: "Record", order: "Json") -> int:
    """docker: the container's first process, by the host's numbers."""
    name = str(request.get("name") or "")
    if not name:
        raise wire.BadRequest("launch: docker needs the container's name")
    ask(order["argv"] or ["docker", "start", "--", name])
    told = ask(["docker", "inspect", "--format", "{{.State.Pid}}", "--", name])
    if not told.isdigit() or told == "0":
        raise wire.BadRequest("docker: the container %s has ended already" % name)
    return int(told)


STARTERS = {"systemd": start_unit, "docker": start_container}


def open_tmux(name: str, argv: "list[str]") -> None:
    """A window for a command in the session of this name, which is made where there is none."""
    if re.search(r"[:.\s]", name) or name.startswith("-"):
        raise wire.BadRequest("launch: %s cannot be the name of a tmux session" % repr(name)[:60])
    try:
        ask(["tmux", "has-session", "-t", "=" + name])
    except wire.BadRequest:
        ask(["tmux", "new-session", "-d", "-s", name] + argv)
    else:
        ask(["tmux", "new-window", "-d", "-t", "=%s:" % name] + argv)


def exit_status(unit: str) -> "int | None":
    """How the main process of a unit ended, as Python's return code; None where that is not known."""
    try:
        told = ask(
            ["systemctl"] + _scope() + ["show", "-p", "ExecMainCode", "-p", "ExecMainStatus", "--", unit],
            10.0,
        )
    except wire.BadRequest:
        return None
    values = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    code, status = values.get("ExecMainCode", "0"), values.get("ExecMainStatus", "")
    if code == "0" or not status.isdigit():
        return None
    return int(status) if code == "1" else -int(status)  # 1 is CLD_EXITED, 2 and 3 a signal


def environment_file(env: "dict[str, str]") -> str:
    """The environment as systemd reads it (systemd.exec(5), EnvironmentFile=)."""
    lines = []
    for name, value in sorted(env.items()):
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            lines.append('%s="%s"\n' % (name, re.sub(r'([\\"$`])', r"\\\1", value)))
    return "".join(lines)


def _scope() -> "list[str]":
    """Root's units belong to the system, anybody else's to their own manager."""
    return [] if os.geteuid() == 0 else ["--user"]


def _main_pid(unit: str) -> int:
    deadline = time.monotonic() + PID_LIMIT
    while True:
        told = ask(["systemctl"] + _scope() + ["show", "-p", "MainPID", "--value", "--", unit])
        if told.isdigit() and told != "0":
            return int(told)
        if time.monotonic() > deadline:
            return 0
        time.sleep(0.1)
