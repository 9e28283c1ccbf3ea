"""What the hands answer is what the operations on the other side of the link read."""

from __future__ import annotations

import base64
import hashlib
import os
import queue
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.agent import leftovers
from specdash.agent.acts import Acts
from specdash.agent.host import Host
from specdash.agent.wire import encode
from specdash.operations import replies, replies_probe
from tests.agent.hands import BOOT, Hands, start_of

ME = {"pid": os.getpid(), "start": start_of(os.getpid())}


def test_every_answer_is_understood(hands: Hands, place: Path, tmp_path: Path) -> None:
    def ask(kind: type[Any], verb: str, **fields: Any) -> Any:
        return msgspec.convert(hands.do(verb, **fields), kind)

    (tmp_path / "broken.index.json").write_text("no index")
    (tmp_path / "nowhere").symlink_to("gone")
    file = tmp_path / "config.json"
    file.write_text("{}")
    sha = hashlib.sha256(b"{}").hexdigest()
    with socket.create_server(("127.0.0.1", 0)) as server, (place / "dev" / "nvidia1").open():
        port = server.getsockname()[1]
        family = ask(replies.Family, "family", pids=[ME], run=None)
        assert family.members == ()
        assert ask(replies.Alive, "alive", targets=[ME]).alive[0].name
        assert ask(replies.Holders, "holders").holders[0].cards == (1,)
        ask(replies.Leftovers, "leftovers")
        probe = ask(
            replies_probe.Probe, "probe", ports=[port], paths=["/"], modules=["pip"], python=sys.executable
        )
        assert probe.ports[0].listeners[0].pid == os.getpid()
        assert probe.limits["nofile"][0] > 0
    rows = ask(
        replies.Stats, "stat_files", paths=[str(tmp_path), str(tmp_path / "broken.index.json"), "/no"]
    ).files
    assert dict(rows[0].entries)["config.json"] == 2
    assert ask(replies.File, "read_file", path=str(file)).bytes == b"{}"
    assert ask(replies.File, "read_file", path="/no/such").exists is False
    assert (
        ask(replies.Signals, "signal", signal="CONT", targets=[ME], boot=BOOT).targets[0].result == "denied"
    )
    assert ask(replies.Removed, "remove", paths=["/no/such"]).files[0].result.startswith("not a leftover")
    wish = {"path": str(file), "data": base64.b64encode(b"[]").decode(), "expect": sha, "link": "through"}
    written = ask(replies.Written, "write_file", **wish)
    assert ask(replies.Written, "restore", backup=written.backup, expect=written.sha256).sha256 == sha
    log = str(place / "log.txt")
    made = ask(replies.Launched, "launch", argv=["true"], env={}, log=log, cwd=None, user=None, name=None)
    assert made.pid
    assert ask(replies.Launched, "launched", run="never-used").found is False
    assert ask(replies.Ran, "run", argv=["echo", "hello"]).output == "hello\n"
    assert ask(replies.Lock, "lock", who="a", what="b").by.who == "a"
    with Hands(place) as other:
        assert msgspec.convert(other.do("lock", who="c", what="d"), replies.Lock).held is False


@pytest.mark.parametrize("verb", ["family", "launched"])
def test_launches_are_told_by_a_field_that_is_not_the_requests_own_token(
    hands: Hands, place: Path, verb: str
) -> None:
    made = hands.do("launch", argv=["sleep", "600"], env={}, log=str(place / "log.txt"))
    try:
        told = hands.do(verb, pids=[], run=made["token"])
        assert made["pid"] in (told.get("pid"), *[row["pid"] for row in told.get("members", [])])
    finally:
        hands.signal("KILL", made["pid"])


def test_an_answer_that_no_line_can_hold_is_an_error_and_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: queue.Queue[dict[str, Any]] = queue.Queue()
    acts = Acts(Host(), {}, sent.put, lambda _: None)
    monkeypatch.setattr(leftovers, "leftovers", lambda acts, request: {"files": "x" * (1 << 20)})
    acts.take({"r": "leftovers", "id": "7"})
    reply = sent.get(timeout=60)
    assert (reply["id"], reply["ok"]) == ("7", False)
    assert reply["error"].startswith("leftovers: the answer is longer than")
    assert len(encode(reply)) < 1000
