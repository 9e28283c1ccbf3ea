"""Who and where the agent is."""

import os
import sys

from specdash.agent import PROTOCOL, procfs
from specdash.agent.processes import user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.host import Host


def container(proc: str) -> "str | None":
    """Why we think that this is the inside of a container, or None."""
    for mark, word in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if os.path.exists(mark):
            return word
    for path in ("/run/systemd/container", proc + "/1/cgroup"):
        try:
            text = procfs.read(path).decode("utf-8", "replace")
        except OSError:
            continue
        if path.startswith("/run"):
            return text.strip() or "container"
        for mark, word in (("docker", "docker"), ("kubepods", "kubernetes"), ("lxc", "lxc")):
            if mark in text:
                return word
    return "pid namespace" if sees_the_machine(proc) is False else None


def sees_the_machine(proc: str) -> "bool | None":
    """Whether the process table is the machine's own, where the kernel's threads hang under pid 2."""
    try:
        return procfs.read(proc + "/2/comm").strip() == b"kthreadd"
    except OSError:
        return False if os.path.exists(proc + "/1/comm") else None


def hello(host: "Host", options: "dict[str, Any]") -> "dict[str, Any]":
    """The first frame."""
    names = os.uname()
    return {
        "t": "hello",
        "at": host.now(),
        "proto": PROTOCOL,
        "specdash": str(options.get("version") or ""),
        "host": host.hostname(),
        "boot": host.boot_id(),
        "pid": os.getpid(),
        "uid": os.getuid(),
        "user": user_name(os.getuid()),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "kernel": names.release,
        "verbs": ["look"] if options.get("watch") else ["look", "act"],
        "container": container(host.proc),
        "host_pids": sees_the_machine(host.proc),
        "simulated": bool(host.simulated),
        "cpus": os.cpu_count() or 1,
    }
