"""Who would start a server again, by control group and parent; and who only happens to hold it."""

from __future__ import annotations

import pytest

from specdash.operations.managers import recognise

ID = "3f2a" + "0" * 60


@pytest.mark.parametrize(
    ("cgroup", "name", "stop"),
    [
        ("/system.slice/sglang.service", "systemd", "systemctl stop sglang.service"),
        ("/system.slice/system-vllm.slice/vllm@prod.service", "systemd", "systemctl stop vllm@prod.service"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service",
            "systemd",
            "systemctl --user stop vllm.service",
        ),
        (f"/docker/{ID}", "docker", "docker stop 3f2a00000000"),
        (f"/system.slice/docker-{ID}.scope", "docker", "docker stop 3f2a00000000"),
        (f"/machine.slice/libpod-{ID}.scope/container", "podman", "podman stop 3f2a00000000"),
        ("/slurm/uid_1000/job_4711/step_batch/task_0", "slurm", "scancel 4711"),
        ("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "slurm", "scancel 4711"),
    ],
)
def test_a_manager_is_recognised_and_how_it_stops(cgroup: str, name: str, stop: str) -> None:
    manager = recognise(cgroup)
    assert manager is not None
    assert (manager.name, " ".join(manager.stop)) == (name, stop)


@pytest.mark.parametrize(
    "cgroup",
    [
        "/system.slice/ssh.service",
        "/system.slice/sshd.service",
        "/system.slice/cron.service",
        "/system.slice/docker.service",
        "/system.slice/containerd.service",
        "/user.slice/user-0.slice/session-12.scope",
        "/user.slice/user-1000.slice/user@1000.service/tmux-spawn-3f.scope",
        "/user.slice/user-1000.slice/user@1000.service/init.scope",
        "/system.slice/getty@tty1.service",
        "/",
        None,
    ],
)
def test_what_a_server_was_merely_started_from_is_no_manager(cgroup: str | None) -> None:
    assert recognise(cgroup) is None


def test_kubernetes_cannot_be_told_from_a_node_so_it_says_what_to_do() -> None:
    uid = "3d2f1c00_1111_2222_3333_444455556666"
    pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    manager = recognise(f"{pod}/cri-containerd-{ID}.scope")
    assert manager is not None
    assert manager.name == "kubernetes"
    assert manager.stop == ()
    assert "delete the pod" in (manager.advice or "")


def test_supervisord_is_known_by_the_parent_and_the_environment() -> None:
    env = {"SUPERVISOR_PROCESS_NAME": "vllm", "SUPERVISOR_GROUP_NAME": "llm"}
    manager = recognise("/system.slice/supervisor.service", parent="supervisord", env=env)
    assert manager is not None
    assert manager.stop == ("supervisorctl", "stop", "llm:vllm")
    assert recognise("/system.slice/supervisor.service", parent="bash", env=env) is None


def test_inside_a_container_its_own_manager_is_out_of_reach() -> None:
    assert recognise(f"/docker/{ID}", container="docker") is None
    assert recognise("/system.slice/sglang.service", container="lxc") is None
