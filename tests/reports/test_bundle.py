"""An evidence bundle: one file with everything, and nothing in it that must not leave."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import msgspec
import pytest

from specdash.logs.buffer import LogBuffer
from specdash.monitor.samples import KernelLine
from specdash.monitor.state import HostState
from specdash.reports import bundle as bundles
from specdash.reports.bundle import LOG_LINES, bundle, name_of
from tests.tui import pieces, sheets, states


def opened(data: bytes) -> dict[str, str]:
    """Every file by its name without the folder; each must be for its owner alone."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for entry in archive.getmembers():
            folder, _, name = entry.name.partition("/")
            assert folder.startswith("evidence-gpubox-")
            assert entry.mode == 0o600
            file = archive.extractfile(entry)
            assert file is not None
            files[name] = file.read().decode("utf-8", "replace")
    return files


def log(*lines: str) -> LogBuffer:
    buffer = LogBuffer()
    buffer.append("".join(f"{line}\n" for line in lines).encode())
    return buffer


def of(state: HostState, **more: object) -> dict[str, str]:
    return opened(bundle(state, {}, **more))  # type: ignore[arg-type]


def test_it_holds_the_verdict_the_values_what_happened_and_what_the_kernel_said() -> None:
    state = msgspec.structs.replace(
        states.stalled(),
        events=sheets.eventful().events,
        kernel=(KernelLine(at=pieces.NOW, text="NVRM: Xid 79"),),
    )
    files = of(state)
    assert {"README.txt", "verdict.txt", "status.json", "alerts.txt", "events.txt", "kernel.txt"} == set(
        files
    )
    assert "STALLED" in files["verdict.txt"]
    assert "capture_collective_hang" in files["verdict.txt"]
    assert json.loads(files["status.json"])["servers"][0]["state"] == "stalled"
    assert "error   sglang:30000 stalled in graph capture" in files["alerts.txt"]
    assert "recovery info    sglang:30000 moved again after 1:36" in files["events.txt"]
    assert "Xid 79" in files["kernel.txt"]
    assert "none was made; connect --record makes one" in files["README.txt"]


def test_the_newest_lines_of_each_log_are_in_it_as_they_may_be_shown() -> None:
    many = [f"line {number}" for number in range(1, LOG_LINES + 501)]
    secret = "api_key='sk-abcdefghijklmnop' \x1b[31mred\x1b[0m"
    files = opened(bundle(states.serving(), {"sglang:30000": log(*many, secret), "../evil": log("x")}))
    lines = files["log-sglang-30000.txt"].splitlines()
    assert len(lines) == LOG_LINES
    assert lines[0] == "line 502"
    assert "sk-abcdefghijklmnop" not in lines[-1]
    assert "\x1b" not in lines[-1]
    assert lines[-1].endswith("red")
    assert files["log-evil.txt"] == "x\n"


def test_a_recording_goes_with_it_and_one_that_is_too_large_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "night.specdash.gz"
    path.write_bytes(b"\x1f\x8bwhatever")
    assert "recording.specdash.gz" in of(states.serving(), recording=path)
    monkeypatch.setattr(bundles, "RECORDING_MOST", 3)
    files = of(states.serving(), recording=path)
    assert "recording.specdash.gz" not in files
    assert str(path) in files["README.txt"]
    gone = of(states.serving(), recording=tmp_path / "none")
    assert "could not be read" in gone["README.txt"]


def test_its_name_says_host_and_moment_and_nothing_a_shell_would_mind() -> None:
    assert name_of(states.serving()).startswith("evidence-gpubox-2026")
    evil = msgspec.structs.replace(states.serving(), target="root@../..;rm -rf ~/\x00")
    assert set(name_of(evil)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")
    assert "/" not in name_of(evil)


def test_a_host_that_was_never_reached_has_a_bundle_too() -> None:
    files = of(states.never_reached())
    assert "Link: lost (Connection refused)." in files["README.txt"]
    assert files["alerts.txt"] == "none stands\n"
