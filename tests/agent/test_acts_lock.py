"""One operation a host: the lock names who has it, and goes with whoever had it."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.hands import Hands, root, until


def take(hands: Hands, who: str = "ada@laptop", what: str = "restart main", **fields: Any) -> dict[str, Any]:
    return hands.do("lock", who=who, what=what, **fields)


def test_the_second_is_told_who_has_it(hands: Hands, place: Path) -> None:
    assert take(hands)["held"]
    with Hands(place) as other:
        answer = take(other, who="bob@desk")
        assert answer["held"] is False
        by = answer["by"]
        assert (by["who"], by["what"], by["pid"]) == ("ada@laptop", "restart main", hands.process.pid)
        assert by["user"] == pwd.getpwuid(os.getuid()).pw_name
        assert hands.do("unlock") == {"released": True}
        assert take(other, who="bob@desk")["held"]
        assert take(hands)["by"]["who"] == "bob@desk"
        assert hands.do("unlock") == {"released": False}


def test_who_has_it_may_say_something_else(hands: Hands, place: Path) -> None:
    take(hands)
    assert take(hands, what="stop main")["held"]
    with Hands(place) as other:
        assert take(other, who="bob@desk")["by"]["what"] == "stop main"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_it_goes_with_the_agent(place: Path, hands: Hands, how: signal.Signals | None) -> None:
    with Hands(place) as gone:
        take(gone)
        if how is None:
            gone.end()
        else:
            gone.process.send_signal(how)
            gone.process.wait(60)
    assert take(hands, who="bob@desk")["held"]


def test_what_we_start_does_not_keep_it(place: Path, hands: Hands) -> None:
    with Hands(place) as gone:
        take(gone)
        made = gone.do("launch", argv=["sleep", "600"], env={}, log=str(place / "log.txt"))
    try:
        assert take(hands, who="bob@desk")["held"]
    finally:
        hands.signal("KILL", made["pid"])


def test_a_later_intent_of_the_same_person_wins(hands: Hands, place: Path) -> None:
    take(hands)
    with Hands(place) as later:
        assert take(later)["held"] is False
        assert take(later, take=True, what="stop main")["held"]
    assert hands.process.wait(60) == -signal.SIGTERM


def test_nobody_elses_is_taken(hands: Hands, place: Path) -> None:
    take(hands)
    with Hands(place) as other:
        assert take(other, who="bob@desk", take=True)["held"] is False
        take(hands)
    assert hands.process.poll() is None


def test_what_somebody_has_scribbled_there_ends_nobody(hands: Hands, place: Path) -> None:
    with (place / "specdash.lock").open("w+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"who": "ada@laptop", "what": "x", "pid": os.getppid(), "start": 1}, file)
        file.flush()
        answer = take(hands, take=True)
        assert answer["held"] is False
        assert (answer["by"]["pid"], answer["by"]["who"]) == (os.getpid(), "somebody")


HOLD = """
import fcntl, json, os, sys
file = open(sys.argv[1], 'w')
fcntl.flock(file, fcntl.LOCK_EX)
start = int(open('/proc/self/stat').read().rpartition(')')[2].split()[19])
json.dump({'who': 'ada@laptop', 'what': 'x', 'pid': os.getpid(), 'start': start}, file)
file.flush()
print('up', flush=True)
sys.stdin.read()
"""


def test_only_an_agent_of_ours_is_ended(hands: Hands, place: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(place / "specdash.lock")]
    stranger = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        answer = take(hands, take=True)
        assert (answer["held"], answer["by"]["pid"]) == (False, stranger.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()


def test_a_link_in_its_place_is_not_followed(hands: Hands, place: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (place / "specdash.lock").symlink_to(tmp_path / "precious")
    hands.refusal("lock", who="a", what="b")
    assert (tmp_path / "precious").read_text() == "precious"


def test_every_user_may_lock(hands: Hands, place: Path) -> None:
    take(hands)
    assert (place / "specdash.lock").stat().st_mode & 0o777 == 0o666
    if root():
        os.chown(place / "specdash.lock", 65534, 65534)
        hands.do("unlock")
        assert take(hands)["held"]


def test_a_lock_whose_file_was_removed_is_taken_anew(hands: Hands, place: Path) -> None:
    take(hands)
    hands.do("unlock")
    (place / "specdash.lock").unlink()
    assert take(hands)["held"]
    until((place / "specdash.lock").exists)
