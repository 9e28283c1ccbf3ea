"""``specdash status``: by the profile, for one server, in commands that exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from specdash.cli import root
from specdash.commands import acting
from specdash.monitor.samples import CardHealth
from specdash.monitor.serverparts import Figures, Latency
from specdash.monitor.state import HostState
from specdash.monitor.status import encode, status_document
from specdash.session import live as session
from tests.monitor.frames_of import process, processes, run, server
from tests.monitor.vllm_frames import STOPPED, family, first_look, second_look
from tests.tui.pieces import NOW
from tests.tui.states import serving


class Source:
    """A host that was looked at."""

    def __init__(self, target: str, state: HostState) -> None:
        self.target, self.state = target, state

    async def run(self) -> None:
        """It is connected already."""

    async def stop(self) -> None:
        """Nothing is held."""


def two_servers() -> HostState:
    memory = second_look(first_look(STOPPED), STOPPED)
    other = [process(one.pid + 200, 1 if one.ppid == 1 else 300, *one.argv, sid=300) for one in server()]
    return run(processes(1003.2, *family("T"), *other), memory=memory).picture


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The targets that were opened, with their options; each shows two servers."""
    told: list[tuple[str, Any]] = []

    def open_source(target: str, options: Any) -> Source:
        told.append((target, options))
        return Source(target, two_servers())

    async def look(_: Source) -> None:
        return None

    monkeypatch.setattr(session, "open_source", open_source)
    monkeypatch.setattr(acting, "_look", look)
    return told


def test_a_target_may_be_a_host_of_the_profile(opened: list[tuple[str, Any]], tmp_path: Path) -> None:
    profile = tmp_path / "specdash.toml"
    profile.write_text('schema = 1\n[hosts.night]\ntarget = "root@gpubox"\nwatch = true\n')
    CliRunner().invoke(root, ["status", "night", "--profile", str(profile)])
    CliRunner().invoke(root, ["status", "elsewhere", "--profile", str(profile)])
    assert [(target, options.watch, options.others) for target, options in opened] == [
        ("root@gpubox", True, ()),
        ("elsewhere", False, ("night",)),
    ], "whoever mistypes a host of the profile is told of it"


@pytest.mark.usefixtures("opened")
def test_one_server_can_be_asked_for_and_every_hint_is_a_command() -> None:
    both = CliRunner().invoke(root, ["status", "gpubox"])
    assert "vllm:30000 STALLED" in both.output
    assert "sglang:30000" in both.output
    assert "→ specdash kill gpubox --server vllm:30000 ends it" in both.output
    one = CliRunner().invoke(root, ["status", "gpubox", "--server", "sglang:30000"])
    assert "vllm:30000" not in one.output
    assert one.exit_code == 0, "what is wrong with another server is not asked"
    assert CliRunner().invoke(root, ["status", "gpubox", "--server", "none"]).exit_code != 0


def test_a_log_of_the_profile_that_is_not_followed_is_said(
    opened: list[tuple[str, Any]], tmp_path: Path
) -> None:
    profile = tmp_path / "specdash.toml"
    told = '[hosts.night]\ntarget = "root@gpubox"\n[servers.main]\nhost = "night"\nengine = "vllm"\n'
    told += 'command = ["vllm", "serve", "m", "--port", "30000"]\nlog = "LOG"\n'
    followed = next(one.log for one in two_servers().servers if one.engine == "vllm")
    assert opened == [], "nothing yet"
    assert followed is not None, "it goes somewhere"
    assert followed.path is not None, "into a file"
    said = []
    for log in ("/nope/x.log", followed.path):
        profile.write_text(told.replace("LOG", log))
        said.append(CliRunner().invoke(root, ["status", "night", "--profile", str(profile)]).output)
    assert "the profile names another, which is not followed: /nope/x.log" in said[0]
    assert "the profile names" not in said[1]


def test_the_document_carries_what_the_panes_show_of_cards_and_latencies() -> None:
    how: dict[str, Any] = {"p50_ms": 210.0, "p90_ms": 480.0, "counted": 42, "window_s": 60.0}
    told = Figures(at=NOW, source="/metrics", ttft=Latency(at=NOW, **how), missing={"itl": "no request yet"})
    state = msgspec.structs.replace(
        serving(),
        now=NOW,
        servers=(msgspec.structs.replace(serving().servers[0], figures=told),),
        health={0: (NOW - 4, CardHealth(index=0, ecc=True, uncorrected=3, nvlinks=18, nvlinks_up=17))},
    )
    seen = msgspec.json.decode(encode(status_document(state)))
    first, second = seen["gpus"][:2]
    assert (first["health"]["uncorrected"], first["health"]["nvlinks_up"], first["health_age_s"]) == (
        3,
        17,
        4.0,
    )
    assert second["health"] is None, "not read is not healthy"
    now = seen["servers"][0]["engine_now"]
    assert (now["ttft"]["p90_ms"], now["ttft"]["counted"]) == (480.0, 42)
    assert now["itl"] is None
    assert now["missing"]["itl"] == "no request yet"
