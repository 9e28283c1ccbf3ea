"""What the parsers make of single files of /proc: titles, arguments, environments, control groups."""

from __future__ import annotations

import re
import time

import pytest

from specdash.agent import procfs, wire
from specdash.agent.crowd import fit


def test_a_name_in_stat_may_hold_anything() -> None:
    fields = b"S 1 4242 4242 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 33 0 8812345 99 25600 0"
    stat = procfs.Stat(b"4242 (VLLM) :: (x) " + fields)
    assert (stat.comm, stat.state, stat.ppid, stat.start) == ("VLLM) :: (x", "S", 1, 8812345)
    assert (stat.cpu_s, stat.threads, stat.rss_mib, stat.kernel) == (2.0, 33, 100, False)


@pytest.mark.parametrize(
    ("raw", "argv"),
    [
        (b"", []),
        (b"python\0-m\0sglang.launch_server\0", ["python", "-m", "sglang.launch_server"]),
        (b"sglang::scheduler_TP0\0\0\0\0\0\0", ["sglang::scheduler_TP0"]),
        (b"VLLM::Worker_TP1     \0", ["VLLM::Worker_TP1"]),
        (b"x\0\0y\0", ["x", "", "y"]),
    ],
)
def test_command_lines_and_titles(raw: bytes, argv: list[str]) -> None:
    assert procfs.arguments(raw) == argv


def test_an_endless_command_line_is_cut() -> None:
    argv = procfs.arguments(b"a\0" + b"b" * 100_000 + b"\0c\0")
    assert argv == ["a", "…"]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--api-key", "sk-1", "--port", "1"], ["--api-key", "<redacted>", "--port", "1"]),
        (["--api-key=sk-1"], ["--api-key=<redacted>"]),
        (["--admin-api-key", "sk-1"], ["--admin-api-key", "<redacted>"]),
        (["--api-key", "k1", "k2", "-x", "y"], ["--api-key", "<redacted>", "<redacted>", "-x", "y"]),
        (["--api-key", "-k1", "--port", "1"], ["--api-key", "<redacted>", "--port", "1"]),
        (
            ["--api-keys", "a", "--secret-key", "b"],
            ["--api-keys", "<redacted>", "--secret-key", "<redacted>"],
        ),
        (["PGPASSWORD=x"], ["PGPASSWORD=<redacted>"]),
        (["--hf-token", "--port", "1"], ["--hf-token", "--port", "1"]),
        (
            ["--tokenizer", "x", "--max-num-batched-tokens", "8192"],
            ["--tokenizer", "x", "--max-num-batched-tokens", "8192"],
        ),
        (
            ["sh", "-c", "VLLM_API_KEY=k vllm serve m --api-key 'a b' -x"],
            ["sh", "-c", "VLLM_API_KEY=<redacted> vllm serve m --api-key <redacted> -x"],
        ),
    ],
)
def test_secrets_in_command_lines_are_hidden(argv: list[str], shown: list[str]) -> None:
    assert procfs.redact(argv) == shown


@pytest.mark.parametrize("unit", ["-", "-a", "a-", "-api-key-", "secret-", "--token "])
def test_no_argument_costs_more_than_its_length(unit: str) -> None:
    began = time.process_time()
    procfs.redact([(unit * procfs.LONGEST_ARGV)[: procfs.LONGEST_ARGV]])
    assert time.process_time() - began < 1.5, "it took ten seconds when it cost the square"


@pytest.mark.parametrize(
    ("raw", "found", "blanked"),
    [
        (b"NCCL_ALGO=Ring\0X=1\0", {"NCCL_ALGO": "Ring"}, False),
        (b"\0\0\0\0NCCL_ALGO=Ring\0", {"NCCL_ALGO": "Ring"}, True),
        (b"duler_TP0\0\0\0NCCL_ALGO=Ring\0", {"NCCL_ALGO": "Ring"}, True),
        (b"", {}, False),
    ],
)
def test_environments(raw: bytes, found: dict[str, str], blanked: bool) -> None:
    assert procfs.environment(raw, [re.compile("^NCCL_")]) == (found, blanked)


def test_the_inner_pid_of_a_container_is_known() -> None:
    assert procfs.status(b"Name:\tx\nUid:\t0\t1000\t0\t0\nNSpid:\t31314\t2\n") == (1000, 2)
    assert procfs.status(b"Uid:\t0\t0\t0\t0\nNSpid:\t7\n") == (0, None)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"0::/system.slice/vllm.service\n", "/system.slice/vllm.service"),
        (b"4:memory:/docker/abc\n1:name=systemd:/x\n0::/\n", "/docker/abc"),
        # Kernels of the first hierarchy: a login, a unit, a job of Slurm.
        (
            b"9:memory:/user.slice\n8:pids:/user.slice\n1:name=systemd:/user.slice/user-7.slice/session-3.scope\n",
            "/user.slice/user-7.slice/session-3.scope",
        ),
        (b"9:memory:/system.slice\n1:name=systemd:/system.slice/a.service\n", "/system.slice/a.service"),
        (
            b"9:memory:/slurm/uid_7/job_4711/step_0\n1:name=systemd:/system.slice/slurmd.service\n"
            b"0::/system.slice/slurmd.service\n",
            "/slurm/uid_7/job_4711/step_0",
        ),
        (b"0::/\n", "/"),
        (b"", None),
    ],
)
def test_the_cgroup_that_tells_most_is_taken(raw: bytes, path: str | None) -> None:
    assert procfs.cgroup(raw) == path


def test_a_crowd_of_processes_still_fits_into_a_frame() -> None:
    process = {"pid": 1, "argv": ["python", "-c", "x" * 3000, "--more"]}
    frame = fit({"t": "processes", "at": 1.0, "list": [dict(process) for _ in range(70)]}, ())
    assert len(wire.encode(frame)) <= wire.MAX_FRAME
    assert frame["list"][0]["argv"][2].endswith("x…")
