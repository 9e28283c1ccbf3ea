from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from specdash.history.recording import Recorder
from specdash.history.redaction import Redactor
from specdash.monitor import frames, samples
from specdash.sanitise import REDACTED
from tests.history.samples import T0, hello, log, server

KEY = "hunter2hunter2"


def kept(*given: frames.Log) -> bytes:
    redactor = Redactor()
    out = [redactor.admit(frame) for frame in given]
    return b"".join(frame.raw for frame in out if isinstance(frame, frames.Log))


def test_no_secret_of_log_argv_or_environment_reaches_the_file(tmp_path: Path) -> None:
    process = samples.Process(
        pid=1,
        ppid=0,
        start=1,
        started=T0,
        argv=("sglang", "--api-key", KEY, f"--admin-api-key={KEY}", "--port", "1"),
        env={
            "VLLM_API_KEY": KEY,
            "HF_TOKEN": KEY,
            "NCCL_ALGO": "Ring",
            "PATH": "/usr/bin",
            "CUDA_HOME": "/c",
        },
    )
    path = tmp_path / "a.gz"
    recorder = Recorder(path, "gpubox")
    for frame in (hello(), frames.Processes(at=T0, list=(process,)), log(f"api_key='{KEY}', port=1\n")):
        recorder(frame)
    recorder.close()
    text = gzip.decompress(path.read_bytes()).decode()
    assert KEY not in text
    assert text.count(REDACTED) == 4
    assert '"NCCL_ALGO":"Ring"' in text
    assert "PATH" not in text
    assert "HF_TOKEN" not in text


def test_a_log_without_secrets_stays_byte_for_byte() -> None:
    given = [
        log("a\r\nb\rc", more=0),
        log(b"\xff\xfe\x1b[0m\n", offset=6),
        log(" 43%|\u2588\u2588\u258e    |\r 47%|", offset=10),
        log(" 48%|\n", offset=40),
    ]
    assert kept(*given) == b"".join(frame.raw for frame in given)


def test_a_bar_that_has_no_end_yet_is_not_held_back() -> None:
    redactor = Redactor()
    frame = redactor.admit(log("Capturing:  10%|"))
    assert isinstance(frame, frames.Log)
    assert frame.raw == b"Capturing:  10%|"


@pytest.mark.parametrize("cut", range(1, len(f"x api_key='{KEY}' y")))
def test_a_secret_cut_in_two_by_a_frame_does_not_pass(cut: int) -> None:
    line = f"x api_key='{KEY}' y\nnext\n"
    for more in (0, 100):
        out = kept(log(line[:cut], more=more), log(line[cut:], offset=cut))
        assert not [n for n in range(len(KEY) - 3) if KEY[n : n + 4].encode() in out]
        assert out.endswith(b"\nnext\n")


def test_a_secret_in_an_argument_dump_across_frames_does_not_pass() -> None:
    dump = "server_args=ServerArgs(" + "a=1, " * 12000 + f"api_key='{KEY}', b=2)\n"
    cut = dump.index(KEY) + 3
    out = kept(log(dump[:cut], more=len(dump) - cut), log(dump[cut:], offset=cut))
    assert KEY[:3].encode() + b"'" not in out
    assert KEY[3:].encode() not in out


def test_an_escape_code_cannot_carry_a_secret_through() -> None:
    assert KEY.encode() not in kept(log(f"api\x1b[0m_key='{KEY}'\n"))


def test_lines_stay_lines_when_a_log_is_rotated_within_one() -> None:
    given = [log("half a line api_key='abc", more=5), log("new file\n", break_="rotated")]
    assert kept(*given).endswith(b"new file\n")
    assert b"abc" not in kept(*given)


def test_the_end_of_the_file_stays_the_end_of_the_file() -> None:
    redactor = Redactor()
    frame = redactor.admit(log(f"token={KEY}\n"))
    assert isinstance(frame, frames.Log)
    assert frame.offset + len(frame.raw) == frame.size


def test_replies_are_not_kept() -> None:
    redactor = Redactor()
    assert redactor.admit(frames.Pong(at=T0, n=1)) is None
    assert redactor.admit(frames.Reply(at=T0, id="1", ok=True, value={"content": KEY})) is None
    assert redactor.admit(frames.Processes(at=T0, list=(server(),))) is not None
