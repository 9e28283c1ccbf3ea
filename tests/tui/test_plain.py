from __future__ import annotations

import msgspec
from click.testing import CliRunner

from specdash.monitor.documents import Progress
from specdash.monitor.state import HostState
from specdash.tui.plain import NEVER_REACHED_S, Narrator, farewell, given_up
from tests.tui import states


def told(*pictures: HostState) -> list[list[str]]:
    narrator = Narrator()
    return [[line.split(" ", 2)[2] for line in narrator.tell(picture)] for picture in pictures]


def later(state: HostState, seconds: float, **changes: object) -> HostState:
    server = msgspec.structs.replace(state.servers[0], **changes) if state.servers else None
    return msgspec.structs.replace(
        state, now=state.now + seconds, servers=(server,) if server else state.servers
    )


def test_an_unchanged_picture_says_nothing() -> None:
    first, again = told(states.loading(), later(states.loading(), 1))
    assert first
    assert again == []


def test_the_first_picture_says_host_cards_and_servers() -> None:
    [lines] = told(states.loading())
    assert "connected" in lines
    assert "is gpubox, as root" in lines
    assert "has 8 GPUs: NVIDIA H200, driver 570.133.20" in lines
    assert any(line.startswith("sglang:30000: found, pid 4242, SGLang 0.5.16") for line in lines)


def test_states_phases_and_alarms_are_each_one_line() -> None:
    _, capture, stalled = told(states.loading(), states.capture(), states.stalled())
    assert "sglang:30000: weights done after 2:41" in capture
    assert "sglang:30000: graphs begins" in capture
    assert any("loading → capturing: working" in line for line in capture)
    assert any("capturing → stalled: no progress for 8:02:51" in line for line in stalled)
    assert "ALARM: sglang:30000 stalled in graph capture: 4/8 since 8:02:51" in stalled


def test_a_moving_counter_is_told_now_and_then_only() -> None:
    base = states.loading()
    pictures = [
        later(base, second, progress=Progress(done=37 + second, total=64, unit="shards"))
        for second in range(1, 62)
    ]
    lines = [line for step in told(base, *pictures)[1:] for line in step]
    assert lines == [f"sglang:30000: weights {37 + second}/64 shards" for second in (1, 31, 61)]


def test_the_link_says_when_it_breaks_why_and_what_is_next() -> None:
    _, lost, back = told(states.capture(), states.lost(), states.capture())
    assert lost == ["connection lost: no answer for 10 s; next try in 8 s, then again and again"]
    assert back == ["connected"]
    assert told(states.refused())[0][0].startswith("no connection: the host key of gpubox changed")


def test_trying_again_in_vain_is_said_once() -> None:
    lost = states.never_reached()
    trying = msgspec.structs.replace(lost, link=msgspec.structs.replace(lost.link, state="connecting"))
    again = msgspec.structs.replace(lost, link=msgspec.structs.replace(lost.link, attempt=9))
    first, *rest = told(states.connecting(), lost, trying, again, trying, again)
    assert first == ["connecting"]
    assert [len(lines) for lines in rest] == [1, 0, 0, 0, 0]


def test_a_host_without_a_driver_and_a_server_that_went_are_said() -> None:
    _, nothing = told(states.capture(), states.no_driver())
    assert "GPUs: no NVIDIA driver here: libnvidia-ml.so.1 was not found" in nothing
    assert "sglang:30000: no longer shown" in nothing
    assert "no server is running here" in nothing


def test_leaving_says_that_the_servers_go_on() -> None:
    assert farewell([states.two_servers()]) == [
        "specdash let go of root@gpubox; sglang:30000 (pid 4242), vllm:8000 (pid 5000) go on"
    ]
    assert farewell([states.crashed()]) == ["specdash let go of root@gpubox"]


def test_leaving_a_made_up_host_does_not_say_that_its_servers_go_on() -> None:
    [line] = farewell([states.two_servers()], ends=True)
    assert line == "specdash let go of root@gpubox; the simulated host ends with the demo"


def test_a_host_never_reached_is_given_up_and_one_that_was_reached_never() -> None:
    def tried(seconds: float, key: str = "ssh_port_refused", **changes: object) -> HostState:
        state = states.never_reached()
        link = msgspec.structs.replace(state.link, since=state.now - seconds, key=key)
        return msgspec.structs.replace(state, link=link, **changes)

    assert not given_up(tried(0))
    assert not given_up(tried(NEVER_REACHED_S - 1))
    assert given_up(tried(NEVER_REACHED_S))
    assert given_up(tried(0, "ssh_no_address"))
    assert not given_up(tried(9 * NEVER_REACHED_S, "ssh_no_address", host=states.lost().host))
    assert given_up(states.refused())
    assert not given_up(states.connecting())
    assert farewell([tried(31)]) == ["specdash: root@gpubox: Connection refused; not reached within 31 s"]


def test_a_next_try_that_comes_at_once_is_no_try_in_0_s() -> None:
    lost = states.never_reached()
    soon = msgspec.structs.replace(lost, link=msgspec.structs.replace(lost.link, retry_at=lost.now + 0.4))
    assert told(soon) == [["not reached: Connection refused; trying again"]]


def test_leaving_a_host_that_was_never_reached_says_why() -> None:
    [line] = farewell([states.refused()])
    assert line.startswith("specdash: root@gpubox: the host key of gpubox changed")
    assert farewell([states.connecting()]) == ["specdash: root@gpubox: no connection was made"]


def test_connect_refuses_what_it_cannot_do_in_one_line() -> None:
    from specdash.commands.connect import command as connect
    from specdash.commands.watch import command as watch

    result = CliRunner().invoke(connect, ["somewhere", "--json"])
    assert result.exit_code == 2
    assert "status --json" in result.output
    assert CliRunner().invoke(connect, []).exit_code == 2
    assert [param.name for param in watch.params if param.name == "watch"] == [], "it always does"
    assert {param.name for param in connect.params} - {param.name for param in watch.params} == {"watch"}
