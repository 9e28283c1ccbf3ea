"""Alerts out of the terminal: one message a change, to whom it matters, never with the address in a word."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from specdash.alerting import sending
from specdash.alerting.herald import Herald
from specdash.alerting.rules import changes, quiet, seen, wanted
from specdash.commands.notify import command
from specdash.errors import SpecdashError
from specdash.monitor.state import HostState
from specdash.profile import loading
from specdash.profile.document import Notify
from tests.tui import fakes, states

replace = msgspec.structs.replace
SECRET = "tgram://123456:ABCDEF-the-secret/789"
PHONE = Notify(url_env="PHONE_URL")
SERVING, STALLED, CAPTURE = states.serving(), states.stalled(), states.capture()


def _in(state: HostState, word: str) -> HostState:
    return replace(state, servers=(replace(state.servers[0], state=word, key="1:1"),))


def _told(*pictures: HostState) -> list[tuple[str, str]]:
    before: dict[str, str] = {}
    out = []
    for picture in pictures:
        out += [(change.state, change.text) for change in changes(before, picture)]
        before = seen(picture)
    return out


def test_each_change_is_told_once_and_what_was_found_well_is_no_news() -> None:
    ready, stalled = _in(SERVING, "ready"), _in(STALLED, "stalled")
    assert _told(ready, ready) == []
    assert [word for word, _ in _told(_in(CAPTURE, "capturing"), stalled, stalled, ready, ready)] == [
        "stalled",
        "ready",
    ]
    assert _told(stalled)[0][1].startswith("sglang:30000 stalled in graphs: no progress for 8:02:51"), (
        "in the words of the alert on the screen"
    )


def test_nobody_is_told_that_a_server_has_stopped_before_its_process_is_gone() -> None:
    stopping = _in(SERVING, "stopped")
    gone = msgspec.structs.replace(
        stopping, servers=(msgspec.structs.replace(stopping.servers[0], gone_at=stopping.now),)
    )
    assert _told(SERVING, stopping, gone)[-1] == ("stopped", "sglang:30000 has stopped")
    assert "stopped" not in [word for word, _ in _told(SERVING, stopping)]


@pytest.mark.parametrize(
    ("hours", "minute", "is_quiet"),
    [("22:00-07:00", 23 * 60, True), ("22:00-07:00", 60, True), ("22:00-07:00", 7 * 60, False),
     ("12:00-13:30", 12 * 60, True), ("12:00-13:30", 13 * 60 + 30, False)],
)  # fmt: skip
def test_quiet_hours_go_over_midnight(hours: str, minute: int, is_quiet: bool) -> None:
    assert quiet(Notify(url_env="X", quiet=hours), minute) is is_quiet


def test_a_rule_is_told_only_of_its_states_and_hosts_and_at_night_of_what_may_wake() -> None:
    rule = Notify(
        url_env="X", on=("stalled", "crashed"), hosts=("gpubox",), quiet="22:00-07:00", wake=("crashed",)
    )
    noon, night = 12 * 60, 60
    assert wanted(rule, "gpubox", "stalled", noon)
    assert not wanted(rule, "gpubox", "ready", noon)
    assert not wanted(rule, "dgx2", "stalled", noon)
    assert not wanted(rule, None, "stalled", noon)
    assert not wanted(rule, "gpubox", "stalled", night)
    assert wanted(rule, "gpubox", "crashed", night)


class Post:
    """Takes messages, or refuses them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.taken: list[tuple[str, str]] = []
        self.error = error

    def __call__(self, rule: Notify, title: str, body: str) -> None:
        if self.error is not None:
            raise self.error
        self.taken.append((title, body))


def test_the_herald_listens_to_hosts_and_sends_from_its_own_thread() -> None:
    post, said = Post(), list[str]()
    herald = Herald({"phone": PHONE}, said.append, send=post, clock=lambda: 1_795_960_000.0)
    source = fakes.source(_in(CAPTURE, "capturing"))
    herald.attend([source], [None])
    source.set(_in(CAPTURE, "capturing"))
    for picture in (_in(STALLED, "stalled"), _in(STALLED, "stalled"), _in(SERVING, "ready")):
        source.set(picture)
    herald.say(None, "gpubox", "the night is over, HF_TOKEN=hf_abcdefghijklmnopqrstuvwx")
    herald.close()
    assert [body.split(" in ")[0] for _, body in post.taken] == [
        "sglang:30000 stalled",
        "sglang:30000 is ready",
        "the night is over, HF_TOKEN=<redacted>",
    ]
    assert said == []


@pytest.mark.parametrize("error", [SpecdashError("it was not taken"), RuntimeError(SECRET)])
def test_a_rule_that_does_not_work_is_said_once_without_its_address(error: Exception) -> None:
    said: list[str] = []
    herald = Herald({"phone": PHONE}, said.append, send=Post(error))
    for _ in range(3):
        herald.say(None, "gpubox", "x")
    herald.close()
    assert len(said) == 1
    assert said[0].startswith("notify phone: ")
    assert "secret" not in said[0]


def test_the_address_comes_from_a_variable_or_a_command_and_is_in_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PHONE_URL", SECRET)
    assert sending.address(PHONE) == SECRET
    monkeypatch.delenv("PHONE_URL")
    with pytest.raises(SpecdashError, match="the variable PHONE_URL is not set here"):
        sending.address(PHONE)
    echo = Notify(url_command=(sys.executable, "-c", f"print({SECRET!r})"))
    assert sending.address(echo) == SECRET
    bad = Notify(url_command=(sys.executable, "-c", f"print({SECRET!r}); raise SystemExit(3)"))
    with pytest.raises(SpecdashError) as error:
        sending.address(bad)
    assert "exit status 3" in error.value.message
    assert "secret" not in str(error.value)
    monkeypatch.setenv("PHONE_URL", SECRET)
    for library, words in (
        (SimpleNamespace(Apprise=lambda: SimpleNamespace(add=lambda url: False)), "none that apprise knows"),
        (
            SimpleNamespace(Apprise=lambda: SimpleNamespace(add=lambda url: True, notify=lambda **_: False)),
            "it was not taken",
        ),
    ):
        monkeypatch.setattr(sending, "_library", lambda library=library: library)
        with pytest.raises(SpecdashError, match=words) as refused:
            sending.send(PHONE, "t", "b")
        assert "secret" not in str(refused.value)


GOOD = """
[hosts.gpubox]
target = "gpubox"
[notify.phone]
url_env = "PHONE_URL"
hosts = ["gpubox"]
quiet = "22:00-07:00"
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            'url_env = "PHONE_URL"',
            f'url = "{SECRET}"',
            "notify.phone.url: unknown key; did you mean url_env?",
        ),
        ('url_env = "PHONE_URL"', "", "give url_env or url_command"),
        ('"22:00-07:00"', '"22-7"', "hours as 22:00-07:00"),
        ('["gpubox"]', '["gpubx"]', "did you mean gpubox?"),
    ],
)
def test_a_mistake_in_a_rule_is_said_without_the_address(before: str, after: str, said: str) -> None:
    assert loading.parse(GOOD).notify["phone"].quiet == "22:00-07:00"
    with pytest.raises(loading.ProfileError) as error:
        loading.parse(GOOD.replace(before, after))
    told = "\n".join(mistake.text("p") for mistake in error.value.mistakes)
    assert said in told
    assert "secret" not in told


def test_the_test_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "specdash.toml"
    path.write_text(GOOD)
    monkeypatch.setattr("specdash.alerting.sending.importlib.import_module", _no_apprise)
    told = CliRunner().invoke(command, ["--test", "--profile", str(path)])
    assert told.exit_code == 1
    assert "apprise is not installed" in told.output
    assert "quiet 22:00-07:00" in told.output
    listed = CliRunner().invoke(command, ["--profile", str(path)])
    assert listed.exit_code == 0
    wrong = CliRunner().invoke(command, ["fone", "--profile", str(path)])
    assert isinstance(wrong.exception, SpecdashError)
    assert "did you mean phone?" in str(wrong.exception)


def _no_apprise(name: str) -> Any:
    raise ImportError(name)


def test_a_message_arrives_by_the_real_library(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    bodies: list[dict[str, Any]] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return None

    server = HTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setenv("PHONE_URL", f"json://127.0.0.1:{server.server_port}/")
        sending.send(PHONE, "specdash gpubox", "sglang:30000 is stalled")
    finally:
        server.shutdown()
        server.server_close()
    assert [(one["title"], one["message"]) for one in bodies] == [
        ("specdash gpubox", "sglang:30000 is stalled")
    ]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("while True: print('x' * 999)", "it says more than an address"),
        ("import time; time.sleep(600)", "no answer within 0 s"),
        ("print('tgram://secret'); raise SystemExit(3)", "exit status 3, and no address"),
    ],
)
def test_a_command_that_floods_hangs_or_fails_is_ended_and_told_without_its_words(
    program: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in program:
        monkeypatch.setattr(sending, "COMMAND_S", 0.3)
    with pytest.raises(SpecdashError, match=says) as told:
        sending.address(Notify(url_command=(sys.executable, "-c", program)))
    assert "secret" not in str(told.value)


def test_a_plugin_that_breaks_is_one_line_without_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(where: str) -> bool:
        raise RuntimeError(f"cannot parse {where}")

    library = SimpleNamespace(Apprise=lambda: SimpleNamespace(add=breaks))
    monkeypatch.setattr(sending, "_library", lambda: library)
    monkeypatch.setenv("PHONE_URL", SECRET)
    with pytest.raises(SpecdashError) as told:
        sending.send(PHONE, "t", "b")
    assert told.value.message == "apprise failed (RuntimeError)"
    assert SECRET not in str(told.value)
