"""A host's clock that is set while it is looked at makes no age jump."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from specdash.agent.host import Host


@pytest.mark.parametrize("set_by", [7200.0, -7200.0])
def test_time_goes_on_as_it_did_when_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_by: float
) -> None:
    host, wall = Host(), time.time
    before, started = host.now(), host.started_at(1, 4711)
    monkeypatch.setattr(time, "time", lambda: wall() + set_by)
    assert 0 <= host.now() - before < 60
    assert abs(host.started_at(1, 4711) - started) < 1
    file = tmp_path / "x.log"
    file.write_bytes(b"x")
    os.utime(file, (time.time(), time.time()))
    assert abs(host.mtime(file.stat()) - host.now()) < 60, "files are stamped by the clock that was set"


def test_without_that_the_hosts_time_is_the_wall_clocks(tmp_path: Path) -> None:
    host = Host()
    before, now = time.time(), host.now()
    assert before - 1 < now < time.time() + 1
    file = tmp_path / "x.log"
    file.write_bytes(b"x")
    assert host.mtime(file.stat()) == file.stat().st_mtime
