from __future__ import annotations

import gzip
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from specdash.history.recording import Recorder, Recording, RecordingError, place
from specdash.monitor import frames
from tests.history.samples import T0, hello, log, tick, written

GOLDEN = Path(__file__).parent.parent / "recordings" / "golden-schema1.specdash.gz"


def recorded(path: Path, *given: frames.AnyFrame) -> list[frames.AnyFrame]:
    recorder = Recorder(path, "gpubox")
    for frame in given:
        recorder(frame)
    recorder.close()
    return list(Recording(path).frames())


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    given = [hello(), log("one\ntwo\n"), log(b"\xff\xfe\n", 1.0), tick(2.0)]
    path = tmp_path / "a.specdash.gz"
    assert recorded(path, *given) == given
    header = Recording(path).header
    assert (header.host, header.started, header.schema, header.redacted) == ("gpubox", T0, 1, True)


def test_the_file_is_gzip_of_json_lines_that_any_tool_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.specdash.gz"
    recorded(path, hello(), tick(1.0))
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [line["t"] for line in lines] == ["recording", "hello", "tick"]


def test_a_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.specdash.gz"
    Recorder(path, "gpubox").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_crash_loses_little(tmp_path: Path) -> None:
    path = tmp_path / "a.specdash.gz"
    recorder = Recorder(path, "gpubox")
    for second in range(60):
        recorder(tick(second))
    # Never closed: as if the machine had lost its power.
    found = list(Recording(path).frames())
    assert len(found) >= 57
    assert found[-1].at >= T0 + 56


@pytest.mark.parametrize("cut", [1, 9, 40, 200])
def test_a_file_that_was_cut_is_read_up_to_its_last_whole_line(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.specdash.gz"
    recorder = Recorder(path, "gpubox")
    for second in range(100):
        recorder(log(f"line {second} {second * 7919 % 1009}\n", second))
    recorder.close()
    path.write_bytes(path.read_bytes()[:-cut])
    found = list(Recording(path).frames())
    assert 50 < len(found) <= 100
    assert all(isinstance(frame, frames.Log) and frame.raw.endswith(b"\n") for frame in found)


def test_damage_in_the_middle_ends_the_recording_there(tmp_path: Path) -> None:
    path = tmp_path / "a.specdash.gz"
    recorder = Recorder(path, "gpubox")
    for second in range(400):
        recorder(log(f"{second * 7919 % 10007} {second * 104729 % 99991}\n", second))
    recorder.close()
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(64)
    path.write_bytes(data)
    assert 0 < len(list(Recording(path).frames())) < 400


def test_two_recordings_one_behind_the_other_are_one(tmp_path: Path) -> None:
    path = written(tmp_path / "a.gz", tick(0))
    path.write_bytes(path.read_bytes() + gzip.compress(b'{"t":"tick","at":1700000009.0}\n'))
    assert [frame.at - T0 for frame in Recording(path).frames()] == [0, 9]


def test_an_unpacked_recording_is_read_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.gz", hello(), tick(1))
    path.write_bytes(gzip.decompress(path.read_bytes()))
    assert len(list(Recording(path).frames())) == 2


def test_frames_of_another_version_are_passed_over(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.gz",
        hello(),
        b'{"t":"weather","at":1.0,"sun":true}',
        b"not json",
        b'{"t":"tick"}',
        tick(1),
    )
    assert [type(frame).__name__ for frame in Recording(path).frames()] == ["Hello", "Tick"]


def test_fields_of_another_version_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "a.gz", b'{"t":"tick","at":1700000001.0,"mood":"calm"}')
    assert list(Recording(path).frames()) == [tick(1)]


def test_a_recording_of_schema_1_is_readable_for_ever() -> None:
    recording = Recording(GOLDEN)
    found = list(recording.frames())
    assert recording.header.host == "gpubox"
    kinds = [type(frame).__name__ for frame in found]
    assert kinds == [
        "Link",
        "Hello",
        "Gpus",
        "Processes",
        "Machine",
        "Log",
        "LogState",
        "Http",
        "Note",
        "Tick",
    ]
    process = found[3].list[0] if isinstance(found[3], frames.Processes) else None
    assert process is not None
    assert process.argv[2] == "sglang.launch_server"
    assert process.env == {"NCCL_ALGO": "Ring"}
    assert isinstance(found[5], frames.Log)
    assert found[5].break_ == "start"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no recording of specdash"),
        (b"hello\n", "is no recording of specdash"),
        (gzip.compress(b"hello\n"), "is no recording of specdash"),
        (gzip.compress(b'{"t":"tick","at":1}\n'), "is no recording of specdash"),
        (gzip.compress(b'{"t":"recording","schema":1}\n'), "is no recording of specdash"),
        (b"\x1f\x8b", "is no recording of specdash"),
        (bytes(range(256)) * 9, "is no recording of specdash"),
        (gzip.compress(b'{"t":"recording","x":' + b"[" * 100_000 + b"\n"), "is no recording of specdash"),
        (gzip.compress(b'{"t":"recording","schema":2,"x":1}\n'), "was made by a newer specdash (schema 2"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "night.gz"
    path.write_bytes(content)
    with pytest.raises(RecordingError) as caught:
        Recording(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_said_as_such(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        Recording(tmp_path / "none.gz")


def test_a_mistyped_path_makes_no_folders(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"there is no folder .*such: make it, or mount its disk"):
        Recorder(tmp_path / "no" / "such" / "folder.gz", "gpubox")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("mine")
    with pytest.raises(RecordingError, match="exists already"):
        Recorder(path, "gpubox")
    assert path.read_text() == "mine"


def test_a_full_disk_ends_the_recording_and_not_the_session(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.gz", "gpubox")
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    recorder._file = full
    told = [recorder(tick(second)) for second in range(10)]
    recorder.close()
    assert [text for text in told if text] == [recorder.problem], "said when it happens, and once"
    assert recorder.problem is not None
    assert recorder.problem == f"the recording ended: the disk of {tmp_path} is full: make room there"


def test_a_disk_that_takes_a_part_gets_the_rest(tmp_path: Path) -> None:
    class Grudging(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:3])

    path = tmp_path / "a.gz"
    recorder = Recorder(path, "gpubox")
    recorder._file = Grudging(path, "wb")
    for second in range(10):
        recorder(tick(second))
    recorder.close()
    assert len(list(Recording(path).frames())) == 10


def test_terminal_codes_in_a_strangers_recording_do_not_pass(tmp_path: Path) -> None:
    note = frames.Note(at=T0, level="info", text="\x1b]0;owned\x07hello")
    (found,) = Recording(written(tmp_path / "a.gz", note)).frames()
    assert isinstance(found, frames.Note)
    assert found.text == "hello"


def test_a_bare_name_goes_to_the_state_folder_and_a_path_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert place("night.gz", "gpubox", T0).parent == tmp_path / "state" / "specdash" / "recordings"
    assert place(None, "root@gpu/box:22", T0).name == "root@gpu_box_22-20231114-221320.specdash.gz"
    assert place("./night.gz", "gpubox", T0) == Path("night.gz")
    assert place("/x/night.gz", "gpubox", T0) == Path("/x/night.gz")
