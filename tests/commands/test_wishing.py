"""Which server ``check``, ``launch`` and ``restart`` start, by what ``--server`` says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from specdash.commands.acting import NoConnection, Scene, no_host
from specdash.commands.targets import meant
from specdash.commands.wishing import wish_for, wish_to_launch
from specdash.errors import SpecdashError
from specdash.monitor.state import HostState
from specdash.operations.found import Found, Memory
from specdash.operations.journal import Journal
from specdash.operations.replies import Family, Member
from specdash.operations.sight import Sight
from specdash.operations.which import Ambiguous
from specdash.operations.work import Launch
from specdash.profile.document import Profile
from tests.operations.test_which import PROFILE
from tests.tui import states


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def scene(server: str | None, state: HostState, profile: Profile = PROFILE) -> Scene:
    session: Any = SimpleNamespace(target="root@gpubox", state=state)
    host = profile.host_of("root@gpubox")
    return Scene(
        session=session,
        profile=profile,
        host_name=host[0] if host else None,
        host=host[1] if host else None,
        journal=Journal(),
        given={"server": server},
    )


@pytest.mark.parametrize("word", ["second", "vllm:8000", "8000", str(states.two_servers().servers[1].pid)])
def test_every_way_to_name_it_starts_the_server_of_the_profile(word: str) -> None:
    assert wish_to_launch(scene(word, states.two_servers())).launch.name == "second"


@pytest.mark.parametrize("word", ["second", "vllm:8000", "8000"])
def test_so_it_does_where_none_runs(word: str) -> None:
    assert wish_to_launch(scene(word, states.no_server())).launch.name == "second"


def test_what_is_not_known_is_said_with_what_is() -> None:
    with pytest.raises(SpecdashError) as refused:
        wish_to_launch(scene("nosuch", states.two_servers()))
    assert str(refused.value) == "how nosuch is started is not known here (that of main, second is)"
    with pytest.raises(SpecdashError, match="nothing is known that could be launched here"):
        wish_to_launch(scene("nosuch", states.two_servers(), Profile()))


def test_of_several_one_must_be_named_and_the_refusal_is_that_of_every_command() -> None:
    with pytest.raises(Ambiguous, match="2 servers on gpubox: say which one by --server") as refused:
        wish_to_launch(scene(None, states.no_server()))
    assert refused.value.exit_code == 4


def test_without_a_profile_it_is_said_whose_start_it_is_and_no_one_of_several_is_picked() -> None:
    nothing = states.no_server()
    argv = ("vllm", "serve", "/m")
    for name in ("vllm:8000", "vllm:8001"):
        launch = Launch(name=name, engine="vllm", argv=argv)
        Memory().keep(Found(target="root@gpubox", launch=launch, taken=nothing.now - 90))
        if name == "vllm:8000":
            only = wish_to_launch(scene(None, nothing, Profile()))
            assert only.source == "no profile tells: as vllm:8000 was started, last seen here, 1:30 ago"
    with pytest.raises(Ambiguous, match="2 servers were seen here: say which one by --server") as refused:
        wish_to_launch(scene(None, nothing, Profile()))
    assert sorted(str(refused.value.hint).split(", ")) == ["vllm:8000", "vllm:8001"]
    assert wish_to_launch(scene("8001", nothing, Profile())).launch.name == "vllm:8001"
    one_runs = states.two_servers()
    assert [one.name for one in one_runs.servers if one.name == "vllm:8000"], "it needs no start"
    assert wish_to_launch(scene(None, one_runs, Profile())).launch.name == "vllm:8001"


def test_a_server_given_for_a_host_is_told_with_the_command_that_was_meant() -> None:
    assert meant(PROFILE, "second", "check", {"profile": "a b.toml", "port": None}) == (
        "second is a server of the profile: specdash check gpubox --profile 'a b.toml' --server second"
    )
    assert meant(PROFILE, "gpubox", "check", {}) is meant(PROFILE, "root@x", "check", {}) is None
    tried = NoConnection("second: the name does not resolve (no address) (check the spelling and DNS)")
    better = no_host("second is a server of the profile: specdash check gpubox --server second", tried)
    assert str(better).startswith("second is a server of the profile: ")
    assert better.hint == "second: the name does not resolve", "no advice on names and networks"
    assert better.exit_code == tried.exit_code


def left_behind(port: int | None) -> Sight:
    """A look at what a server without its main process has left."""
    name = "vllm" if port is None else f"vllm:{port}"
    crashed = msgspec.structs.replace(
        states.two_servers().servers[1], name=name, port=port, gone_at=1.0, processes=1
    )
    core = Member(pid=110, start=1100, state="S", title="VLLM::EngineCore")
    return Sight(server=crashed, family=Family(members=(core,)), argv=("VLLM::EngineCore",))


def test_what_a_crashed_server_left_says_nothing_of_its_start_and_is_never_remembered_as_it() -> None:
    for port, profile in ((None, PROFILE), (8001, PROFILE), (8000, Profile())):
        sight = left_behind(port)
        with pytest.raises(SpecdashError, match="its command line was not seen") as refused:
            wish_for(scene(None, states.two_servers(), profile), sight)
        assert str(refused.value.hint).startswith("a profile can start it")
    assert Memory().all("root@gpubox") == []
    assert wish_for(scene(None, states.two_servers()), left_behind(8000)).launch.name == "second"
    launch = Launch(name="vllm:8000", engine="vllm", argv=("vllm", "serve", "/m"))
    Memory().keep(Found(target="root@gpubox", launch=launch))
    again = wish_for(scene(None, states.two_servers(), Profile()), left_behind(8000)).launch
    assert again.argv == launch.argv
