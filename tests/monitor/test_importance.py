"""Which of several servers comes first: where a person looks, and where the lines are printed."""

from __future__ import annotations

import msgspec

from specdash.monitor.importance import by_importance
from specdash.reports.look import describe
from tests.tui import pieces
from tests.tui.states import two_servers


def test_living_before_gone_and_sick_before_well_and_then_the_longest_up() -> None:
    well = pieces.server(key="1:1", started_at=pieces.NOW - 500)
    young = pieces.server(key="2:2", started_at=pieces.NOW - 5)
    sick = pieces.server(key="3:3", state="degraded")
    gone = pieces.server(key="4:4", state="crashed", gone_at=pieces.NOW - 50)
    lately = pieces.server(key="5:5", state="crashed", gone_at=pieces.NOW - 1)
    state = pieces.picture(servers=(gone, young, lately, well, sick))
    assert [server.key for server in by_importance(state)] == ["3:3", "1:1", "2:2", "5:5", "4:4"]


def test_one_look_at_several_servers_says_how_to_look_at_one_alone() -> None:
    state = two_servers()
    told = list(describe(state))
    assert (
        f"2 servers; one alone: specdash status {state.target} --server {by_importance(state)[0].name}"
        in told
    )
    alone = msgspec.structs.replace(state, servers=state.servers[:1])
    assert not [line for line in describe(alone) if "--server" in line]
