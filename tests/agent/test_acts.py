"""Requests to the hands: refused under watch, answered once, remembered by their token."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specdash.agent.acts import READ, VERBS, Acts
from specdash.agent.host import Host
from specdash.agent.records import Records
from specdash.agent.wire import BadRequest
from tests.agent.driver import complaints
from tests.agent.hands import BOOT, Hands, start_of, until

ASKED: dict[str, dict[str, Any]] = {
    "signal": {"signal": "TERM", "targets": [], "boot": BOOT},
    "remove": {"paths": []},
    "write_file": {"path": "/tmp/x", "data": "", "expect": None},
    "restore": {"backup": "some-backup", "expect": None},
    "launch": {"argv": ["true"], "env": {}, "log": "/tmp/x.log"},
    "run": {"argv": ["true"]},
    "bench": {"workload": {"command": ["true"]}},
    "bench_follow": {"run": "never-used"},
    "bench_stop": {"run": "never-used"},
    "lock": {"who": "a", "what": "b"},
    "unlock": {},
    "syslog": {"text": "hello"},
    "family": {"pids": [], "run": None},
    "alive": {"targets": []},
    "holders": {},
    "leftovers": {},
    "read_file": {"path": "/etc/hostname"},
    "stat_files": {"paths": ["/etc"]},
    "probe": {"ports": [1], "paths": ["/"], "modules": ["pip"]},
    "launched": {"token": "never-used"},
}


@pytest.fixture
def log(place: Path) -> Iterator[socket.socket]:
    """The host's log, as syslogd would read it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(place / "log"))
        reader.settimeout(60)
        yield reader


def test_every_verb_is_asked_for_here() -> None:
    assert set(ASKED) == set(VERBS)


def test_every_verb_answers_under_every_python(python: str, place: Path) -> None:
    fine = {**ASKED, "write_file": {"path": str(place / "new"), "data": "eA==", "expect": None}}
    fine["launch"] = {"argv": ["true"], "env": {}, "log": str(place / "log.txt")}
    fine["signal"] = {"signal": "CONT", "targets": [_target(os.getpid())], "boot": BOOT}
    fine["probe"] = {**ASKED["probe"], "python": python}
    with Hands(place, python) as hands:
        for verb, fields in fine.items():
            if verb not in ("restore", "bench_follow", "bench_stop"):
                hands.do(verb, **fields)
        run = hands.do("bench", workload={"command": ["sleep", "60"]})["token"]
        assert hands.do("bench_follow", run=run)["alive"]
        assert not hands.do("bench_stop", run=run)["killed"]
        written = hands.do("write_file", path=str(place / "new"), data="eQ==", expect=_sha(b"x"))
        hands.do("restore", backup=written["backup"], expect=written["sha256"])
        assert (place / "new").read_text() == "x"
        assert complaints(hands) == []


@pytest.mark.parametrize("verb", [verb for verb, (_, kind) in VERBS.items() if kind != READ])
def test_watch_only_changes_nothing(place: Path, verb: str) -> None:
    with Hands(place, options={"watch": True}) as hands:
        assert hands.refusal(verb, **ASKED[verb]) == "watch-only"
        assert hands.do("alive", targets=[]) == {"alive": [], "zombies": [], "gone": []}
    assert not (place / "run").exists()


def test_a_request_that_makes_no_sense_is_answered_with_why(hands: Hands) -> None:
    assert "targets" in hands.refusal("signal", signal="TERM", boot=BOOT)
    assert "a token is" in hands.refusal("signal", "../../etc", **ASKED["signal"])
    assert "A path begins" in hands.refusal("read_file", path="relative").replace("a path", "A path")


def test_a_token_of_another_request_is_not_answered_from_its_record(hands: Hands) -> None:
    hands.do("syslog", "token-1", text="one")
    assert "used for another request (syslog)" in hands.refusal("syslog", "token-1", text="two")
    assert "used for another request (syslog)" in hands.refusal("remove", "token-1", paths=[])


def test_a_refusal_is_remembered_too(hands: Hands, place: Path) -> None:
    asked = {"path": str(place / "file"), "data": "eA==", "expect": _sha(b"old")}
    first = hands.reply(hands.send("write_file", "token-1", **asked))
    (place / "file").write_text("old")
    again = hands.reply(hands.send("write_file", "token-1", **asked))
    assert (again.ok, again.error) == (False, first.error)
    assert again.value["repeat"]
    assert (place / "file").read_text() == "old"


def test_what_was_claimed_and_not_finished_is_said_as_such(hands: Hands, place: Path) -> None:
    with Hands(place) as earlier:
        earlier.do("syslog", "token-1", text="one")
    (place / "run" / "token-1" / "answer").unlink()
    assert hands.refusal("syslog", "token-1", text="one").startswith("unfinished:")
    (place / "run" / "token-2").mkdir(mode=0o700)
    assert hands.refusal("syslog", "token-2", text="one").startswith("unfinished:")


def test_the_record_is_there_before_anything_is_done(hands: Hands, place: Path) -> None:
    code = "import os, sys; print(os.listdir(sys.argv[1]))"
    argv = [sys.executable, "-c", code, str(place / "run" / "token-1")]
    done = hands.do("run", "token-1", argv=argv, env={}, cwd="/")
    assert "'claim'" in done["output"]
    assert "'answer'" not in done["output"]
    assert done["folder"] == str(place / "run" / "token-1")


def test_the_end_of_the_link_does_not_cut_a_change_short(place: Path) -> None:
    up, go = place / "up", place / "go"
    wait = f"open({str(up)!r}, 'w')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    code = f"import os, time\n{wait}print('done')"
    with Hands(place) as hands:
        asked = {"argv": [sys.executable, "-c", code], "env": {}, "cwd": "/"}
        hands.send("run", "token-1", **asked)
        until(lambda: up.exists() and (place / "run" / "token-1" / "begun").exists())
        assert hands.process.stdin is not None
        hands.process.stdin.close()
        go.touch()
        assert hands.process.wait(60) == 0
    answer = json.loads((place / "run" / "token-1" / "answer").read_text())
    assert answer["value"]["output"] == "done\n"


def test_the_link_stays_alive_while_something_takes_long(hands: Hands) -> None:
    token = hands.send("run", argv=["sleep", "30"], env={}, cwd="/", limit=1)
    hands.do("alive", targets=[])
    assert hands.reply(token).value["timed_out"]


# ------------------------------------------------------------------ the folder of records


def test_records_are_private(hands: Hands, place: Path) -> None:
    hands.do("syslog", "token-1", text="one")
    assert (place / "run").stat().st_mode & 0o777 == 0o700
    assert (place / "run" / "token-1").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_open_to_others_is_closed_first(hands: Hands, place: Path) -> None:
    (place / "run").mkdir(mode=0o777)
    hands.do("syslog", text="one")
    assert (place / "run").stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_the_folder_is_refused(hands: Hands, place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (place / "run").symlink_to(tmp_path / "elsewhere")
    assert "not a folder of ours" in hands.refusal("syslog", text="one")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_somebody_elses_folder_is_refused(hands: Hands, place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    (place / "run").mkdir()
    os.chown(place / "run", 65534, 65534)
    assert "not a folder of ours" in hands.refusal("syslog", text="one")


def test_old_records_are_dropped_and_those_of_living_launches_kept(place: Path) -> None:
    class Made(Host):
        def run_folder(self) -> str:
            return str(place / "run")

    records = Records(Made())
    request = {"r": "syslog", "text": "x"}
    for token in ("over-1", "fresh-1", "server-1", "ended-1"):
        record, ours = records.claim(token, request)
        assert ours
        record.write("answer", {"ok": True, "value": {}})
        if token in ("server-1", "ended-1"):
            record.write("start", {"pid": 1, "start": 1, "boot": ""})
        if token == "ended-1":
            record.write("exit", {"exit": 0})
        if token != "fresh-1":
            os.utime(record.folder, (time.time() - 8 * 86400,) * 2)
    Records(Made()).claim("next-1", request)
    assert sorted(path.name for path in (place / "run").iterdir()) == ["fresh-1", "next-1", "server-1"]


@pytest.mark.parametrize("token", ["", "abc", "a/b/c/d", "..", "a" * 65, "tok en", 7, None])
def test_a_token_that_is_no_fit_name_is_refused(place: Path, token: object) -> None:
    with pytest.raises(BadRequest, match="a token is"):
        Records(Host()).claim(token, {"r": "syslog"})


# ------------------------------------------------------------------ the host's log


def test_each_change_leaves_one_line_in_the_hosts_log(place: Path, log: socket.socket) -> None:
    victim = subprocess.Popen(["sleep", "600"])
    try:
        with Hands(place, env={"SSH_CONNECTION": "192.0.2.7 5 192.0.2.1 22"}) as hands:
            hands.signal("KILL", victim.pid)
            line = log.recv(4096).decode()
            assert line.startswith("<13>")
            assert f"specdash[{hands.process.pid}]" in line
            assert f"signal KILL to {victim.pid}: sent 1 (from 192.0.2.7)" in line
            hands.refusal("restore", backup="no-such-backup", expect=None)
            assert "restore no-such-backup: failed: there is no backup" in log.recv(4096).decode()
            hands.do("run", argv=["true", "--api-key", "sesame"], env={}, cwd="/")
            assert "run true --api-key <redacted>: exit 0" in log.recv(4096).decode()
            hands.do("family", pids=[], run=None)
            assert hands.do("syslog", text="restart of \x1b[31mmain\nby me")["logged"]
            assert log.recv(4096).decode().endswith(": restart of  [31mmain by me")
    finally:
        victim.kill()
        victim.wait()


def test_a_host_without_a_log_is_fine(hands: Hands) -> None:
    assert hands.do("syslog", text="hello")["logged"] is False


def test_a_fault_of_our_own_is_answered_and_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    frames: list[dict[str, Any]] = []
    acts = Acts(Host(), {}, frames.append, said.append)
    monkeypatch.setattr("specdash.agent.signals.targets", lambda _: 1 / 0)
    acts.take({"r": "alive", "id": "one", "targets": []})
    until(lambda: frames)
    assert (frames[0]["ok"], frames[0]["id"]) == (False, "one")
    assert "ZeroDivisionError" in frames[0]["error"]
    assert "ZeroDivisionError" in said[0]


def _target(pid: int) -> dict[str, int]:
    return {"pid": pid, "start": start_of(pid)}


def _sha(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()
