from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.driver import RunningAgent, binding, interpreters
from tests.agent.hands import Hands, furnish
from tests.agent.madeup import MARK, WAIT, Make
from tests.nvmlstub.stub import NvmlStub, build

INTERPRETERS = interpreters()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = ", ".join(f"{version} ({path})" for version, path in INTERPRETERS.items())
    terminalreporter.write_line(f"Pythons that the agent was run under: {found}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "python" in metafunc.fixturenames:
        metafunc.parametrize("python", INTERPRETERS.values(), ids=INTERPRETERS.keys())


@pytest.fixture(scope="session")
def pynvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binding(tmp_path_factory.mktemp("binding"))


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: the NVML test double cannot be built")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def stub(tmp_path: Path, nvml_library: Path) -> NvmlStub:
    return NvmlStub(tmp_path, nvml_library)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of a made-up host."""
    return furnish(tmp_path / "host")


@pytest.fixture
def hands(place: Path) -> Iterator[Hands]:
    """An agent on it that may change things."""
    with Hands(place) as running:
        yield running


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a server's log will be."""
    return tmp_path / "server.log"


@pytest.fixture
def make() -> Iterator[Make]:
    """Start a Python process with a title of its own; its first line has come when it is given back."""
    made: list[subprocess.Popen[str]] = []

    def start(title: str, *arguments: str, code: str = WAIT, **options: Any) -> subprocess.Popen[str]:
        argv = [f"{title} {MARK}", "-c", code, *arguments]
        process = subprocess.Popen(
            argv,
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        made.append(process)
        return process

    yield start
    for process in made:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def agent() -> Iterator[RunningAgent]:
    """One of this very machine."""
    with RunningAgent() as running:
        yield running
