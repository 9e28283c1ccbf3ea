from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdash.cli import main
from specdash.history.recording import place

RECORDINGS = Path(__file__).parent.parent / "recordings"
HANG = str(RECORDINGS / "vllm-run4-s2-s3-s4.specdash.gz")


def specdash(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_plain_lines_tell_the_whole_recording_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = specdash(capsys, "replay", HANG, "--plain")
    assert code == 0
    assert "vllm-run4 (recording)" in out
    assert out.index("is ready") < out.index("ALARM: vllm:8000 stalled") < out.index("moved again")
    assert out.count("ALARM: vllm:8000 crashed") == 3


def test_a_recording_is_found_by_the_bare_name_that_record_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kept = place("night.specdash.gz", "gpubox", 0.0)
    kept.parent.mkdir(parents=True)
    kept.write_bytes(Path(HANG).read_bytes())
    for words in (("replay", kept.name, "--at", "100", "--json"), ("report", kept.name)):
        assert specdash(capsys, *words)[0] == 0, words
    assert specdash(capsys, "replay", "other.gz")[0] == 2


def test_the_status_of_a_second_is_the_document_of_that_second(capsys: pytest.CaptureFixture[str]) -> None:
    for second, state in (("100", "compiling"), ("167", "stalled"), ("175", "ready"), ("190", "crashed")):
        code, out, _ = specdash(capsys, "replay", HANG, "--at", second, "--json")
        assert code == 0
        document = json.loads(out)
        assert document["schema"] == 1
        assert [server["state"] for server in document["servers"]] == [state]


def test_a_screenshot_shows_that_second(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = tmp_path / "hang.svg"
    code, out, err = specdash(
        capsys, "replay", HANG, "--at", "167", "--screenshot", str(drawing), "--size", "100x30"
    )
    assert (code, out) == (0, "")
    assert "second 167" in err
    text = drawing.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "STALLED" in text
    assert "Worker" in text


def test_a_screenshot_is_of_the_server_that_was_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing = tmp_path / "hang.svg"
    shot = ("replay", HANG, "--at", "167", "--screenshot", str(drawing), "--server")
    code, _, err = specdash(capsys, *shot, "sglang:30000")
    assert code == 2
    assert "no server sglang:30000 here: vllm:8000, at that second" in err
    assert specdash(capsys, *shot, "8000")[0] == 0
    assert "STALLED" in drawing.read_text(encoding="utf-8")


def test_lines_and_document_of_a_recording_are_about_the_server_that_was_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = specdash(capsys, "replay", HANG, "--plain", "--server", "nosuch")
    assert code == 0
    assert "no server nosuch here: vllm:8000" in out
    code, out, err = specdash(capsys, "replay", HANG, "--at", "167", "--json", "--server", "nosuch")
    assert (code, out) == (1, "")
    assert "no server nosuch here" in err


@pytest.mark.parametrize("size", ["120", "120x", "x40", "axb", "120x40x2"])
def test_a_size_that_is_none_is_a_wrong_call(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = specdash(capsys, "replay", HANG, "--screenshot", "x.svg", "--size", size)
    assert code == 2
    assert "say 120x40" in err


def test_what_is_no_recording_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.log"
    path.write_text("INFO hello\n")
    code, out, err = specdash(capsys, "replay", str(path), "--plain")
    assert (code, out) == (2, "")
    assert err == f"specdash: {path} is no recording of specdash (connect --record FILE makes one)\n"


def test_a_screenshot_that_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = specdash(capsys, "replay", HANG, "--at", "1", "--screenshot", "/no/such/folder/x.svg")
    assert code == 1
    assert "cannot write x.svg: there is no folder /no/such/folder" in err
