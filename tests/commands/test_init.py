"""``specdash init`` beside somebody who restarts the server just then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from specdash.commands.init import _drafted
from specdash.monitor.state import HostState
from specdash.operations import sight
from specdash.operations.replies import Family, Member, Parent
from tests.tui import states

SERVING = states.serving()
SERVER = SERVING.servers[0]
COMMAND = ("python3", "-m", "sglang.launch_server", "--port", "30000")


def member(pid: int, title: str, *, dead: bool = False) -> Member:
    return Member(pid=pid, start=SERVER.start, title=title, zombie_parent=Parent(pid=1) if dead else None)


@pytest.mark.parametrize(
    ("left", "gone"),
    [
        ((member(SERVER.pid, "python3 -m sglang.launch_server"),), False),
        ((member(SERVER.pid, "python3", dead=True), member(9, "sglang::scheduler_TP0")), True),
        ((member(9, "sglang::scheduler_TP0"),), True),
        ((), True),
    ],
)
async def test_a_server_whose_main_process_has_just_ended_is_drafted_as_gone(
    left: tuple[Member, ...], gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(*_: Any) -> sight.Sight:
        return sight.Sight(server=SERVER, family=Family(members=left), argv=COMMAND)

    monkeypatch.setattr(sight, "look", look)
    here = SimpleNamespace(state=HostState(target="gpubox"), session=None)
    drafted = await _drafted(cast(Any, here), SERVER)
    assert (drafted.gone, drafted.found is None) == (gone, gone)
