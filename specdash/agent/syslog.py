"""One line in the host's log for each change, so that its owner can see later who did what."""

import os
import socket
import time

from specdash.agent import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.records import Record

    Json = dict[str, Any]

NOTICE = "<13>"
"""Facility user, severity notice (RFC 3164)."""
LONGEST = 900
LIMIT = 1.0


def syslog(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb: one line, in the words of whoever asks."""
    return {"logged": write(acts.host.syslog, str(request["text"]))}


def tell(acts: "Acts", request: "Json", record: "Record", answer: "Json") -> None:
    """The line about a change that was made, or was not."""
    outcome = record.says or "done" if answer["ok"] else "failed: " + answer["error"]
    write(acts.host.syslog, "%s: %s%s" % (summary(request), outcome, _asked_by()))


def summary(request: "Json") -> str:
    """What was asked for, without secrets and without data."""
    verb = request["r"]
    if verb == "signal":
        targets = [target for target in request.get("targets") or () if isinstance(target, dict)]
        pids = " ".join(str(target.get("pid")) for target in targets)
        return "signal %s to %s" % (request.get("signal"), pids)
    if verb in ("launch", "run"):
        argv = procfs.redact([str(part) for part in request.get("argv") or ()])
        return "%s %s" % (verb, " ".join(argv) or request.get("name"))
    if verb == "remove":
        return "remove %s" % " ".join(str(path) for path in request.get("paths") or ())
    if verb == "bench":
        workload = request.get("workload") or {}
        asked = procfs.redact([str(part) for part in workload.get("command") or ()])
        return "bench %s" % (" ".join(asked) or workload.get("url"))
    return "%s %s" % (verb, request.get("path") or request.get("backup") or "")


def write(path: str, text: str) -> bool:
    """Whether the line was taken. A host without a log is no reason to complain."""
    words = "".join(letter if letter.isprintable() else " " for letter in text)[:LONGEST]
    line = "%s%s specdash[%d]: %s" % (NOTICE, time.strftime("%b %e %H:%M:%S"), os.getpid(), words)
    data = line.encode("utf-8", "replace")
    return _send(path, socket.SOCK_DGRAM, data) or _send(path, socket.SOCK_STREAM, data + b"\0")


def _send(path: str, kind: int, data: bytes) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, kind) as link:
            link.settimeout(LIMIT)
            link.connect(path)
            link.sendall(data)
            return True
    except OSError:
        return False


def _asked_by() -> str:
    """From where: as sshd tells its sessions."""
    address = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    sudo = os.environ.get("SUDO_USER")
    words = [word for word in (sudo and "as " + sudo, address and "from " + address) if word]
    return " (%s)" % ", ".join(words) if words else ""
