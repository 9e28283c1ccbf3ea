"""Who would start a server again: recognised from its cgroup and its parent, and how each stops it.

A cgroup alone proves little: whatever was started from an ssh login without logind lives in
``sshd.service``. Such units are never stopped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Name: TypeAlias = Literal["systemd", "docker", "podman", "slurm", "kubernetes", "supervisor"]

_DOCKER = re.compile(r"/docker[-/](?P<id>[0-9a-f]{64})")
_PODMAN = re.compile(r"/libpod-(?P<id>[0-9a-f]{64})")
_POD = re.compile(r"kubepods.*?pod(?P<uid>[0-9a-f]{8}[-_][0-9a-f_-]{27,})")
_SLURM = re.compile(r"/(?:slurm[^/]*/(?:.*/)?)?job_(?P<job>\d+)(?:/|$)")
_UNIT = re.compile(r"/(?P<unit>[^/]+\.service)(?=/|$)")

NOT_MANAGERS = frozenset(
    "sshd ssh dropbear cron crond atd anacron getty login systemd-logind docker containerd podman slurmd"
    " kubelet k3s rke2-server rke2-agent crio gdm gdm3 sddm lightdm display-manager jupyter jupyterhub"
    " code-server tmux screen supervisor supervisord dbus nvidia-persistenced user".split()
)
"""Units that only happen to hold what was started from them; stopping them would hit much more."""


class Manager(msgspec.Struct, frozen=True, kw_only=True):
    """Something that starts a server and may start it again."""

    name: Name
    what: str
    """``unit sglang.service``; ``container 3f2a…``; ``job 123``."""
    stop: tuple[str, ...] = ()
    """The command that stops it. Empty: it cannot be stopped from here."""
    advice: str | None = None
    """What to do where it cannot."""


def recognise(
    cgroup: str | None,
    *,
    parent: str = "",
    env: Mapping[str, str] | None = None,
    container: str | None = None,
) -> Manager | None:
    """The manager of a process, or None.

    ``parent``: the parent's short name. ``env``: as far as it is known. ``container``: why the host we are on
    is itself a container, where managers of the outside cannot be seen.
    """
    env = env or {}
    if parent.startswith("supervisord") and env.get("SUPERVISOR_PROCESS_NAME"):
        group, process = env.get("SUPERVISOR_GROUP_NAME"), env["SUPERVISOR_PROCESS_NAME"]
        name = f"{group}:{process}" if group and group != process else process
        return Manager(name="supervisor", what=f"program {name}", stop=("supervisorctl", "stop", name))
    path = cgroup or ""
    if (pod := _POD.search(path)) is not None:
        return Manager(
            name="kubernetes",
            what=f"pod {pod['uid'].replace('_', '-')}",
            advice="delete the pod or scale its deployment to 0, else Kubernetes starts it again",
        )
    if (job := _SLURM.search(path)) is not None and ("slurm" in path or parent.startswith("slurmstepd")):
        return Manager(name="slurm", what=f"job {job['job']}", stop=("scancel", job["job"]))
    if container:
        return None  # what we see is the container that we are in ourselves, and its manager is outside
    if (found := _DOCKER.search(path)) is not None:
        short = found["id"][:12]
        return Manager(name="docker", what=f"container {short}", stop=("docker", "stop", short))
    if (found := _PODMAN.search(path)) is not None:
        short = found["id"][:12]
        return Manager(name="podman", what=f"container {short}", stop=("podman", "stop", short))
    return _systemd(path)


def _systemd(path: str) -> Manager | None:
    units = [match["unit"] for match in _UNIT.finditer(path)]
    if not units:
        return None
    unit = units[-1]
    user = len(units) > 1 and units[0].startswith("user@")
    stem = unit.removesuffix(".service").partition("@")[0]
    if stem in NOT_MANAGERS:
        return None
    command = ("systemctl", "--user", "stop", unit) if user else ("systemctl", "stop", unit)
    return Manager(name="systemd", what=f"unit {unit}", stop=command)
