from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from specdash.cli import main
from tests.logs.jsonfiles import json_file
from tests.monitor.logs_of import FOLDER, told, whole

HEALTHY = str(FOLDER / "sglang" / "02-healthy-tp8-eagle3-v0.5.23.log")
STALLED = str(FOLDER / "sglang" / "03-stalled-graph-capture-tp8-eagle3-v0.5.5.log")
OOM = str(FOLDER / "sglang" / "04-oom-graph-capture-tp8-v0.5.23.log")


def log(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["log", *arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


def document(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    _, out, _ = log("--json", *arguments, capsys=capsys)
    assert out.count("\n") == 1
    return json.loads(out)


TOO_LONG = (
    "(APIServer pid=26) INFO 11-29 14:08:14 [api_utils.py:286] non-default args: {'model_tag': '/srv/tiny'}",
    "Traceback (most recent call last):",
    '  File "/opt/vllm/config/model.py", line 121, in __init__',
    "    s.__pydantic_validator__.validate_python(ArgsKwargs(args, kwargs), self_instance=s)",
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
    "  Value error, User-specified max_model_len (99999) is greater than the derived max_model_len"
    " (max_position_embeddings=2048.0 or model_max_length=None in model's config.json).",
)


@pytest.mark.parametrize("before", ["", "   18.224 \\n ", "18.224123 "])
def test_a_refused_setting_is_the_one_cause_whatever_stands_before_each_line(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vllm.log"
    file.write_text("".join(f"{before}{line}\n" for line in TOO_LONG))
    code, out, _ = log(str(file), capsys=capsys)
    assert code == 1
    assert "✖ context_too_long: the asked context 99999 is longer than the model's 2048" in out
    assert "peer_died_first" not in out, "the head of the same message is no victim"


def test_the_file_in_which_docker_keeps_a_log_says_what_the_log_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for plain in (HEALTHY, STALLED, OOM):
        file = tmp_path / "0123456789ab-json.log"
        file.write_bytes(json_file(Path(plain).read_bytes()))
        kept = document("--silent-for", "900", str(file), capsys=capsys)
        assert kept == document("--silent-for", "900", plain, capsys=capsys)
        assert kept["engine"] == "sglang"


def test_a_healthy_log_is_told_calmly(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = log(HEALTHY, capsys=capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("● ready")
    assert "SGLang" in lines[1]
    assert "EAGLE3 3 steps" in lines[1]
    assert "  ✓ weights target  5:46" in lines
    assert "✖" not in out


def test_a_crash_is_told_with_its_cause_and_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = log(OOM, capsys=capsys)
    assert code == 1
    assert out.startswith("✖ crashed in graphs of the target")
    assert "oom_capture" in out
    assert "line 71, TP5" in out
    assert "→ lower --mem-fraction-static" in out


def aged(name: str, folder: Path, seconds: float) -> str:
    """A copy of that log, last written to so long ago."""
    path = folder / Path(name).name
    path.write_bytes(Path(name).read_bytes())
    os.utime(path, (time.time() - seconds,) * 2)
    return str(path)


def test_a_start_that_stopped_hours_ago_is_not_told_as_one_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = aged(STALLED, tmp_path, 8 * 3600 + 5)
    code, out, _ = log(path, capsys=capsys)
    assert code == 0
    assert out.startswith("? unknown in graphs of the target, 3 of 10 batches")
    assert "what these do now is not known: progress bar, milestones, compilers" in out
    assert "last line 8:00:05 ago (file's time): whether it still runs cannot be told from a log alone" in out
    doc = document(path, capsys=capsys)
    assert (doc["state"], doc["phase"], doc["verdict"]["word"]) == ("unknown", "capture", "unknown")
    assert (doc["alarm"], doc["diagnoses"]) == (False, [])
    assert doc["verdict"]["reasons"][0]["signal"] == "file"
    told = log(path, "--silent-for", "800", capsys=capsys)[1]
    assert told.startswith("✖ stalled"), "who says how long it is silent is believed"


def test_an_old_log_of_a_server_that_serves_or_has_crashed_is_what_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = log(aged(HEALTHY, tmp_path, 7200), capsys=capsys)[1]
    assert out.startswith(
        "● ready · last line 2:00:00 ago (file's time): whether it still runs cannot be told"
    )
    (boot,) = [line for line in out.splitlines() if " boot " in line]
    assert boot.endswith(" s from its first line"), "when its process began no log tells"
    assert "file's time" not in log(aged(OOM, tmp_path, 7200), capsys=capsys)[1]


def test_silence_is_called_a_stall_only_when_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = log(aged(STALLED, tmp_path, 5), capsys=capsys)
    assert code == 0
    assert out.startswith("◐ capturing in graphs of the target, 3 of 10 batches")
    code, out, _ = log(STALLED, "--silent-for", "800", capsys=capsys)
    assert code == 1
    assert out.startswith(
        "✖ stalled in graphs of the target, 3 of 10 batches, no progress for 13:20 (limit 2:00)"
    )


def test_milestones_are_listed_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = log(HEALTHY, capsys=capsys)
    _, listed, _ = log(HEALTHY, "--milestones", capsys=capsys)
    assert len(listed.splitlines()) == len(out.splitlines()) + len(told(Path(HEALTHY).name).milestones)
    assert "2026-11-02 11:06:39  capture end  TP3 target verify" in listed


def test_the_document_has_the_fields_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(STALLED, "--silent-for", "821", capsys=capsys)
    assert doc["schema"] == 1
    assert (doc["engine"], doc["state"], doc["phase"], doc["role"]) == (
        "sglang",
        "stalled",
        "capture",
        "target",
    )
    assert doc["progress"] == {"done": 3, "total": 10, "unit": "batches"}
    assert (doc["verdict"]["word"], doc["verdict"]["since_s"], doc["verdict"]["limit_s"]) == (
        "stalled",
        821,
        120,
    )
    assert doc["alarm"] is True
    assert set(doc["milestones"][0]) == {"line", "rank", "role", "phase", "part", "event", "time"}


def test_several_files_make_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(HEALTHY, OOM, capsys=capsys)
    assert [one["state"] for one in doc] == ["ready", "crashed"]


def test_several_files_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = log(HEALTHY, OOM, capsys=capsys)
    assert code == 1
    assert f"== {HEALTHY}\n● ready" in out
    assert f"== {OOM}\n✖ crashed" in out


def test_evidence_beside_the_log_is_weighed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = tmp_path / "seen.json"
    evidence.write_text('{"compilers": 3, "changed_s": {"progress": 100}}')
    doc = document(STALLED, "--silent-for", "100", "--evidence", str(evidence), capsys=capsys)
    assert doc["state"] == "capturing"
    assert doc["alarm"] is False


@pytest.mark.parametrize("text", ["{", '{"gpu": 1}', '{"workers": [{"state": "X"}], "http": 3}'])
def test_wrong_evidence_is_one_line_that_names_the_file(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "seen.json"
    evidence.write_text(text)
    code, _, err = log(STALLED, "--evidence", str(evidence), capsys=capsys)
    assert code == 2
    assert err.count("\n") == 1
    assert "seen.json" in err


def test_standard_input_is_read_to_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Path(OOM).open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        code, out, _ = log("-", capsys=capsys)
    assert code == 1
    assert out.startswith("✖ crashed")


def test_a_compressed_log_is_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "old.log.gz"
    packed.write_bytes(gzip.compress(whole("vllm-gpu-run3-S1")))
    doc = document(str(packed), capsys=capsys)
    assert (doc["engine"], doc["version"], doc["state"]) == ("vllm", "0.26.0", "stopped")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 20, "not a text file"),
        (bytes(range(32)) * 200, "not a text file"),
        ("hello".encode("utf-16"), "UTF-16"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 50, "zstd"),
        (gzip.compress(b"hello\n" * 10000)[:60], "damaged or cut off"),
    ],
)
def test_what_is_no_log_is_said_in_one_line(
    content: bytes | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    code, out, err = log(str(path), capsys=capsys)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert says in err
    assert "thing" in err


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full", "/dev/random"])
def test_a_device_without_end_is_no_log(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert log(name, capsys=capsys)[2] == f"specdash: {name} is a device, not a log file\n"


def test_a_pipe_is_read_to_its_end_and_an_empty_name_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"hello\n",))
    writer.start()
    assert "1 line" in log(str(pipe), capsys=capsys)[1]
    writer.join()
    assert "an empty name" in log("", capsys=capsys)[2]


def test_whoever_waits_at_a_terminal_for_a_pipe_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"hello\n",))
    writer.start()
    assert (
        log(str(pipe), capsys=capsys)[2] == f"{pipe} is a pipe: what is written into it is read to its end\n"
    )
    writer.join()
    read_end, write_end = os.pipe()
    os.close(write_end)
    assert log(f"/dev/fd/{read_end}", capsys=capsys)[2] == "", "that of <(command) has its writer"
    os.close(read_end)


def test_a_directory_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a directory" in log(str(tmp_path), capsys=capsys)[2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_somebody_else_is_said_to_be_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    path.chmod(0)
    assert "may not be read" in log(str(path), capsys=capsys)[2]


def test_one_missing_file_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = log(str(tmp_path / "gone"), HEALTHY, capsys=capsys)
    assert code == 1
    assert "● ready" in out
    assert "no such file" in err


def test_an_unknown_engine_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = log(HEALTHY, "--engine", "ollama", capsys=capsys)
    assert code == 2
    assert "sglang, vllm" in err


def test_an_unknown_format_says_so_and_is_no_alarm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nginx.log"
    path.write_text("hello\nworld\n")
    code, out, _ = log(str(path), capsys=capsys)
    assert code == 0
    assert out.startswith("? unknown")
    assert "format unknown, verdicts limited" in out


def test_a_log_without_a_byte_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.log"
    path.write_bytes(b"")
    assert document(str(path), capsys=capsys)["state"] == "unknown"


def test_secrets_and_escape_codes_do_not_leave_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(
        b"[2026-11-02 10:00:00] server_args={'model_path': 'm\x1b]0;owned\x07', 'api_key': 'hunter2'}\n"
        b"[2026-11-02 10:00:01] Scheduler hit an exception: Traceback (most recent call last):\n"
        b"ValueError: --api-key hunter2 \x1b[2J is bad\n"
    )
    for arguments in ([str(path)], [str(path), "--json"], [str(path), "--milestones"]):
        _, out, err = log(*arguments, capsys=capsys)
        assert "hunter2" not in out + err
        assert "\x1b" not in out + err
        assert "\\u001b" not in out + err
