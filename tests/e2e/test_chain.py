"""The whole chain: the command line, a real sshd, the real agent, the real NVML binding, one document."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartSshd
from tests.nvmlstub.stub import NvmlStub, build

LOG = """\
[AT] server_args=ServerArgs(model_path='/models/t', tp_size=1, port=30999)
[AT] Init torch distributed begin.
[AT] Init torch distributed ends. elapsed=1.00 s, mem usage=0.50 GB
[AT] Load weight begin. avail mem=90.00 GB
\rMulti-thread loading shards:  25% Completed | 16/64 [00:10<00:30,  1.60it/s]"""
PROGRAM = f"""
import sys, time
sys.stderr.write({LOG!r}.replace("AT", time.strftime("%Y-%m-%d %H:%M:%S")))
sys.stderr.flush()
time.sleep(300)
"""

PATIENT = "import specdash.session.glance as g; g.PATIENCE_S = 60.0; from specdash.cli import main; main()"
"""The command, whose one look at a host waits for whatever a busy machine keeps back."""


def specdash(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PATIENT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)


def look(config: Path, alias: str = "box") -> tuple[int, dict[str, Any]]:
    done = specdash("status", alias, "--json", "--ssh-config", str(config))
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here: the made-up NVML library cannot be built")
    return build(tmp_path_factory.mktemp("nvml") / "lib")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line and log are a loading SGLang's."""
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "launch_server.py").write_text(PROGRAM)
    with (tmp_path / "sglang.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sglang.launch_server", "--port", "30999"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while (tmp_path / "sglang.log").stat().st_size < len(LOG):
        assert process.poll() is None
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def test_cards_in_every_kind_of_trouble_are_told_apart_through_a_real_sshd(
    start_sshd: StartSshd, library: Path, tmp_path: Path
) -> None:
    stub = NvmlStub(tmp_path, library)
    faults = {"nvmlDeviceGet*@5": "GPU_IS_LOST", "nvmlDeviceGetUtilizationRates@3": "hang"}
    cards: dict[int, Any] = {
        1: {"mem_used_mib": 76000},
        4: {"mem_total_mib": "na", "power_limit_w": "na", "mig_mode": "na"},
    }
    stub.write(gpu={"util": 10}, by_index=cards, faults=faults)
    pairs = " ".join(f"{name}={value}" for name, value in stub.env().items())
    sshd = start_sshd(f"SetEnv {pairs}")
    sshd.know()
    code, document = look(sshd.client_config())
    gpus = {gpu["index"]: gpu for gpu in document["gpus"]}
    assert len(gpus) == 8
    assert code == 1, "lost and orphaned cards need a person"
    assert gpus[0]["error"] is None
    assert gpus[0]["util"] == 10
    assert gpus[5]["error"] == "GPU is lost"
    assert gpus[3]["error"].startswith("no answer for")
    assert (gpus[4]["total_mib"], gpus[4]["error"]) == (None, None), "unsupported is neither 0 nor an error"
    assert gpus[1]["used_mib"] == 76000
    assert gpus[1]["processes"] == []


def test_a_loading_server_is_found_through_a_real_sshd_and_a_refused_port_is_no_alarm(
    start_sshd: StartSshd, server: subprocess.Popen[bytes]
) -> None:
    sshd = start_sshd()
    sshd.know()
    _, document = look(sshd.client_config())
    mine = [one for one in document["servers"] if one["pid"] == server.pid]
    assert len(mine) == 1
    seen = mine[0]
    assert (seen["engine"], seen["state"], seen["phase"]) == ("sglang", "loading", "weights")
    assert seen["progress"] == {"done": 16, "total": 64, "unit": "shards"}
    assert seen["readiness"]["port"]["says"] == "waiting"
    assert not seen["alarm"]


def test_a_host_that_does_not_answer_is_one_line_and_exit_code_3(start_sshd: StartSshd) -> None:
    sshd = start_sshd()
    sshd.know()
    config = sshd.client_config()
    sshd.stop()
    done = specdash("status", "box", "--ssh-config", str(config))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("specdash: box: nothing listens on 127.0.0.1")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs /proc")
def test_the_simulated_night_is_called_a_stall_hours_old_with_the_guilty_rank(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "specdash", "sim", "--scenario", "zombie"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as sim:
        try:
            assert sim.stdout is not None
            told = json.loads(sim.stdout.readline())
            code, document = look(Path(told["ssh_config"]), told["target"])
        finally:
            sim.terminate()
    server = document["servers"][0]
    assert code == 1
    assert (server["state"], server["phase"], server["lagging"]) == ("stalled", "capture", ["TP3"])
    assert server["verdict"]["since_s"] > 7 * 3600
    assert any(d["root"] and d["key"] == "capture_collective_hang" for d in server["diagnoses"])
    assert [gpu["used_mib"] // 1024 for gpu in document["gpus"]] == [76] * 8
    assert document["host"]["simulated"]
