from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or writes the history, journals and recordings of whoever runs it."""
    before = os.environ.get("XDG_STATE_HOME")
    folder = tmp_path_factory.mktemp("state")
    os.environ["XDG_STATE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture(scope="session", autouse=True)
def _no_width_of_the_runners_terminal() -> None:
    """What is folded depends on no test runner: readline leaves COLUMNS to the processes that it starts."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def _signals_as_on_a_terminal() -> None:
    """A shell's background and nohup leave them ignored, and so to every program that a test starts."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


LONG = (
    "e2e/",
    "sim/",
    "agent/test_acts",
    "agent/test_life.py",
    "agent/test_polls.py",
    "agent/test_ports.py",
    "agent/test_processes.py",
    "agent/test_tail",
    "tui/test_terminal.py",
    "screens/test_gallery_sizes.py",
    "screens/test_poor_terminals.py",
    "operations/test_story.py",
    "operations/test_real_processes.py",
    "runbooks/test_night.py",
)
"""Over real servers, agents and terminals, mostly waiting: ``pytest -m long`` runs them, as CI does."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long by where it stands."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(LONG):
            item.add_marker("long")
        if item.path.name == "test_real_processes.py":
            # One operation at a time on a host: these take the lock of the very machine they run on.
            item.add_marker(pytest.mark.xdist_group("this host"))


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Tests that run side by side must agree on their names, although keys and archives are made anew."""
    if isinstance(val, bytes):
        return f"{len(val)} bytes"
    return re.sub(r"AAAA[A-Za-z0-9+/=]+", "KEY", val) if isinstance(val, str) and "AAAA" in val else None
