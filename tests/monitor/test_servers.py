"""Servers are found in a process table, without configuration, and nothing else is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from specdash.intake.rules import default_rules
from specdash.monitor.logsource import log_source
from specdash.monitor.samples import Process
from specdash.monitor.servers import Family, discover

TITLES = default_rules().titles


def process(pid: int, ppid: int, *argv: str, sid: int = 0, **more: Any) -> Process:
    return Process(pid=pid, ppid=ppid, start=pid, started=float(pid), argv=argv, sid=sid, **more)


def sglang(first: int, port: int, sid: int) -> list[Process]:
    command = ("python3", "-m", "sglang.launch_server", "--tp", "2", "--port", str(port))
    return [
        process(first, 1, *command, sid=sid),
        process(
            first + 1, first, "python3", "-c", "from multiprocessing.resource_tracker import main", sid=sid
        ),
        process(first + 2, first, "sglang::scheduler_TP0", sid=sid),
        process(first + 3, first, "sglang::scheduler_TP1", sid=sid),
        process(first + 4, first, "sglang::detokenizer", sid=sid),
    ]


def only(families: tuple[Family, ...]) -> Family:
    assert len(families) == 1, families
    return families[0]


def test_an_sglang_server_is_found_with_its_ranks() -> None:
    family = only(discover(sglang(100, 30000, 100), TITLES))
    assert (family.engine, family.main.pid, family.orphaned) == ("sglang", 100, False)
    assert family.ranks == {102: "TP0", 103: "TP1"}
    assert {p.pid for p in family.members} == {101, 102, 103, 104}


def test_two_servers_on_one_host_are_two() -> None:
    families = discover([*sglang(100, 30000, 100), *sglang(200, 30001, 200)], TITLES)
    assert [(f.main.pid, len(f.members)) for f in families] == [(100, 4), (200, 4)]


def test_vllm_is_found_behind_its_shell_and_counts_once() -> None:
    table = [
        process(10, 1, "bash", "-c", "vllm serve /m --port 8100 > log 2>&1", sid=10),
        process(11, 10, "/v/bin/python3", "/v/bin/vllm", "serve", "/m", "--port", "8100", sid=10),
        process(12, 11, "VLLM::EngineCore", sid=10),
        process(13, 12, "VLLM::Worker_TP0", sid=10),
        process(14, 12, "VLLM::Worker_TP1", sid=10),
        process(20, 1, "tail", "-f", "vllm serve.log"),
    ]
    family = only(discover(table, TITLES))
    assert (family.engine, family.main.pid) == ("vllm", 11)
    assert {family.ranks[13], family.ranks[14]} == {"TP0", "TP1"}


def test_a_forked_copy_of_the_command_line_is_no_second_server() -> None:
    command = ("python3", "-m", "sglang.launch_server", "--port", "30000")
    family = only(discover([process(1, 0, *command), process(2, 1, *command)], TITLES))
    assert [p.pid for p in family.members] == [2]


def test_workers_without_their_main_process_are_an_orphaned_server() -> None:
    table = [process(12, 1, "VLLM::EngineCore", sid=11), process(13, 12, "VLLM::Worker", sid=11)]
    family = only(discover(table, TITLES))
    assert family.orphaned
    assert {family.main.pid, *(p.pid for p in family.members)} == {12, 13}


def test_a_child_that_left_the_tree_is_known_by_session_and_title() -> None:
    table = [*sglang(100, 30000, 100), process(150, 1, "sglang::scheduler_TP2", sid=100)]
    assert 150 in only(discover(table, TITLES)).ranks


@pytest.mark.parametrize(
    "argv",
    [
        ("node", "/usr/bin/agent", "please run vllm serve m"),
        ("make", "vllm serve"),
        ("rsync", "x/vllm serve", "y"),
        ("tini", "--", "vllm", "serve", "m"),
        ("apptainer", "exec", "x.sif", "vllm", "serve", "m"),
        ("/opt/conda/bin/python", "/opt/conda/bin/conda", "run", "-n", "x", "vllm", "serve", "m"),
        ("uv", "run", "vllm", "serve", "m"),
        ("SCREEN", "-dmS", "x", "vllm", "serve", "m"),
        ("tmux: server", "new", "vllm serve m"),
        ("python3", "-m", "ipykernel_launcher", "-f", "vllm serve"),
        ("python3", "-c", "import os; os.system('vllm serve m')"),
        ("python3", "/usr/bin/vllm", "bench", "serve"),
        ("python3", "/home/u/vllm.py", "serve"),
    ],
    ids=" ".join,
)
def test_whoever_starts_or_names_a_server_is_none(argv: tuple[str, ...]) -> None:
    assert discover([process(100, 1, *argv, sid=100)], TITLES) == ()
    child = process(101, 100, "python3", "/usr/bin/vllm", "serve", "m", sid=100)
    assert only(discover([process(100, 1, *argv, sid=100), child], TITLES)).main.pid == 101


@pytest.mark.parametrize(
    ("argv", "engine"),
    [
        (("vllm", "serve", "m"), "vllm"),
        (("python3", "/v/bin/vllm", "serve", "m"), "vllm"),
        (("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"), "vllm"),
        (("python3", "-m", "vllm.entrypoints.cli.main", "serve", "m"), "vllm"),
        (("python3", "-um", "sglang.launch_server", "--tp", "2"), "sglang"),
        (("python3", "/src/sglang/launch_server.py", "--tp", "2"), "sglang"),
        (("python3", "/v/bin/sglang", "serve", "--model-path", "m"), "sglang"),
    ],
)
def test_every_way_to_start_a_server_is_known_here_and_to_the_agent(
    argv: tuple[str, ...], engine: str
) -> None:
    assert only(discover([process(100, 1, *argv)], TITLES)).engine == engine
    watched = [pattern for titles in TITLES for pattern in titles.watch]
    assert any(re.search(pattern, " ".join(argv)) for pattern in watched)


def test_a_host_without_servers_has_none() -> None:
    assert discover([process(1, 0, "/sbin/init"), process(5, 1, "python3", "train.py")], TITLES) == ()


@pytest.mark.parametrize(
    ("out", "err", "kind", "word"),
    [
        ("/var/log/s.log", "/var/log/s.log", "file", "fd 2 and fd 1"),
        ("pipe:[1]", "/var/log/s.log", "file", "fd 2"),
        ("/var/log/s.log", "/dev/pts/3", "file", "fd 1"),
        ("/dev/pts/3", "/dev/pts/3", "terminal", "terminal"),
        ("pipe:[1]", "pipe:[1]", "pipe", "pipe"),
        ("/tmp/x.log (deleted)", "/tmp/x.log (deleted)", "deleted", "deleted"),
        ("/dev/null", "/dev/null", "null", "keeps no log"),
        (None, None, "unknown", "--log PATH"),
    ],
)
def test_where_the_log_goes_is_said_in_words(out: str | None, err: str | None, kind: str, word: str) -> None:
    source = log_source(process(1, 0, "x", out=out, err=err), None)
    assert source.kind == kind
    assert word in source.says
    assert (source.path is not None) == (kind == "file")


ID = "3f2a" + "0" * 60
POD = "3d2f1c00_1111_2222_3333_444455556666"
PODS = f"/kubepods.slice/kubepods-pod{POD}.slice"
JSON = f"/var/lib/docker/containers/{ID}/{ID}-json.log"


@pytest.mark.parametrize(
    ("cgroup", "out", "path", "word"),
    [
        (f"/docker/{ID}", "pipe:[1]", JSON, "3f2a00000000"),
        (
            f"/system.slice/docker-{ID}.scope",
            "/dev/pts/0",
            JSON,
            "",
        ),
        (f"/machine.slice/libpod-{ID}.scope/container", "pipe:[1]", None, "podman logs -f 3f2a00000000"),
        (
            f"{PODS}/cri-containerd-{ID}.scope",
            "pipe:[1]",
            None,
            "/var/log/pods/",
        ),
        ("/system.slice/vllm.service", "socket:[7]", None, "journalctl -fu vllm.service"),
        ("/system.slice/vllm.service", "pipe:[7]", None, "a pipe to another program"),
        ("/slurm/uid_1000/job_4711/step_batch", "/home/u/slurm-4711.out", "/home/u/slurm-4711.out", "(fd 2"),
        ("/user.slice/user-0.slice/session-1.scope", "/dev/pts/3", None, "in tmux, pipe-pane -o"),
        (f"/docker/{ID}", "/dev/null", None, "keeps no log"),
    ],
)
def test_where_a_manager_keeps_the_log_is_known(cgroup: str, out: str, path: str | None, word: str) -> None:
    source = log_source(process(1, 0, "x", out=out, err=out, cgroup=cgroup), None)
    assert source.path == path
    assert word in source.says


def test_a_file_inside_a_container_is_read_through_its_process() -> None:
    inside = process(4242, 0, "x", out="/app/s.log", err="/app/s.log", cgroup=f"/docker/{ID}", nspid=7)
    assert log_source(inside, None).path == "/proc/4242/root/app/s.log"
    assert log_source(inside, None, inside=True).path == "/app/s.log", "we are in there, too"


def test_in_a_container_its_managers_files_are_out_of_reach() -> None:
    server = process(1, 0, "x", out="pipe:[1]", err="pipe:[1]", cgroup=f"/docker/{ID}")
    assert log_source(server, None, inside=True).path is None


def test_a_given_log_wins() -> None:
    assert log_source(process(1, 0, "x", out="/a", err="/a"), "/b").path == "/b"
