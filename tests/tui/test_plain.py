from __future__ import annotations

import msgspec
from click.testing import CliRunner

from specdash.monitor.documents import Progress, Reason, Verdict
from specdash.monitor.serverparts import Step
from specdash.monitor.state import Alert, HostState
from specdash.operations.which import Wanted
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
    assert back == ["connected again; nothing was seen for 51 s"], "as the list of events has it"
    other = msgspec.structs.replace(
        states.lost(), link=msgspec.structs.replace(states.lost().link, reason="refused")
    )
    assert told(states.lost(), other)[1] == [
        "still not connected: refused; next try in 8 s, then again and again"
    ], "one cut is one loss"
    assert told(states.refused())[0][0].startswith("no connection: the host key of gpubox changed")


def test_why_nothing_is_known_is_told_once_its_log_was_looked_at() -> None:
    def unread(value: str) -> HostState:
        reason = Reason(signal="log", value=value, age_s=None, says="unknown")
        verdict = Verdict(word="unknown", since_s=None, limit_s=None, reasons=(reason,))
        seen = msgspec.structs.replace(states.loading().servers[0], state="unknown", verdict=verdict)
        return msgspec.structs.replace(states.loading(), servers=(seen,))

    found, looked, same = told(unread("not come yet"), unread("empty so far"), unread("empty so far"))
    assert not [line for line in found if "because log" in line]
    assert looked == ["sglang:30000: because log: empty so far"]
    assert same == []


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
    assert farewell([states.crashed()]) == [
        "specdash let go of root@gpubox; sglang:30000 (pid 4242) crashed: needs a person"
    ]
    assert farewell([states.no_server()]) == ["specdash let go of root@gpubox"]


def test_leaving_says_of_no_end_that_was_seen_to_or_replaced_that_it_needs_a_person() -> None:
    state = states.crashed()
    dead = state.servers[0]
    seen = msgspec.structs.replace(state, alerts=())
    assert farewell([seen]) == ["specdash let go of root@gpubox"]
    heir = msgspec.structs.replace(
        dead, key="9:9", pid=9, state="loading", gone_at=None, started_at=dead.started_at + 9, processes=3
    )
    again = msgspec.structs.replace(state, servers=(heir, dead))
    assert farewell([again]) == ["specdash let go of root@gpubox; sglang:30000 (pid 9) goes on"]
    left = msgspec.structs.replace(dead, processes=2)
    [line] = farewell([msgspec.structs.replace(state, servers=(heir, left))])
    assert "sglang:30000 (pid 4242) crashed: needs a person" in line, "what it left holds memory"


def test_a_server_that_ran_before_we_came_is_looked_into_first_and_has_no_transition() -> None:
    ready = states.serving()
    old = msgspec.structs.replace
    unread = old(ready.servers[0], state="starting", phase=None, log_lines=0, lamps=(), truth="4 processes")
    first = old(ready, servers=(unread,), alerts=(), events=())
    found, then = told(first, old(ready, now=ready.now + 1, alerts=(), events=()))
    [line] = [line for line in found if "found, pid" in line]
    assert line.endswith("; it is being looked into")
    assert any(line.startswith("sglang:30000: is ready: ") for line in then)
    assert not [line for line in then if "→" in line or "begins" in line or " done" in line]
    fresh = old(first, servers=(old(unread, started_at=first.now - 3),))
    found, then = told(fresh, old(ready, now=ready.now + 1, alerts=(), events=()))
    assert any(line.endswith("; starting: 4 processes") for line in found)
    assert any("starting → ready" in line for line in then)


def test_leaving_hundreds_of_servers_names_those_that_need_a_person_and_counts_the_others() -> None:
    state = states.two_servers()
    one = state.servers[0]
    many = [msgspec.structs.replace(one, key=str(port), name=f"sglang:{port}") for port in range(205)]
    crowd = msgspec.structs.replace(state, servers=tuple(many))
    assert farewell([crowd]) == ["specdash let go of root@gpubox; 205 servers go on"]
    many[7] = msgspec.structs.replace(many[7], state="stalled")
    ill = msgspec.structs.replace(state, servers=tuple(many))
    assert farewell([ill]) == [
        "specdash let go of root@gpubox; sglang:7 (pid 4242) stalled: needs a person; 204 others go on"
    ]


def test_leaving_hosts_that_are_lost_says_of_each_that_nobody_knows_whether_its_servers_go_on() -> None:
    lost = states.lost()
    lines = farewell([lost, lost])
    assert len(lines) == 2
    assert ", last heard " in lines[0]
    assert lines[0].endswith(" ran then")


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


def test_a_server_that_was_asked_for_and_is_not_here_is_said_once_and_at_once() -> None:
    def heard(wanted: str, *pictures: HostState) -> list[str]:
        narrator = Narrator(wanted=Wanted(wanted))
        return [line for one in pictures for line in narrator.tell(one) if "no server " in line]

    one = states.capture()
    unlisted = msgspec.structs.replace(one, processes_at=None)
    [line] = heard("missing\x1b[2J", unlisted, one, later(one, 1))
    assert line.endswith("no server missing here: sglang:30000; all are told of")
    assert heard("30000", one) == heard("4242", one) == heard("sglang:30000", one) == []
    assert heard("x", states.no_server())[0].endswith("no server x here: none runs")
    nameless = msgspec.structs.replace(one.servers[0], name="vllm", engine="vllm", port=None)
    unread = msgspec.structs.replace(one, servers=(nameless,))
    assert heard("vllm:8730", unread) == [], "its log, which names it, is still to be read"
    assert len(heard("vllm:8730", unread, later(unread, 5))) == 1


def test_of_several_servers_it_is_said_how_to_hear_of_one_alone_and_then_that_one_is_told_alone() -> None:
    several = states.two_servers()
    first, second = several.servers
    lines = [line for line in Narrator().tell(several) if " servers; " in line]
    assert [line.partition("gpubox ")[2] for line in lines] == [
        "has 2 servers; --server NAME|PORT|PID tells of one alone"
    ]
    ill = msgspec.structs.replace(second, state="stalled", truth="stands still")
    alert = Alert(key=f"server:{second.key}/stalled/1", at=several.now, severity="error", text="it stands")
    after = msgspec.structs.replace(later(several, 1), servers=(first, ill), alerts=(alert,))
    for wanted, told in ((str(first.port), False), (str(second.port), True)):
        narrator = Narrator(wanted=Wanted(wanted))
        heard = "\n".join([*narrator.tell(several), *narrator.tell(after)])
        assert " servers; " not in heard
        assert (f"{first.name}: found" in heard, f"{second.name}: found" in heard) == (not told, told)
        assert ("ALARM: it stands" in heard, "stands still" in heard) == (told, told)
    narrator = Narrator(wanted=Wanted(str(first.port)))
    narrator.tell(several)
    gone = msgspec.structs.replace(later(several, 1), servers=(second,))
    assert [line.partition("gpubox ")[2] for line in narrator.tell(gone)] == [
        f"{first.name}: no longer shown"
    ]


def test_a_verdict_is_told_with_its_reasons_its_cause_and_what_to_do() -> None:
    _, lines = told(states.capture(), states.stalled())
    server = states.stalled().servers[0]
    [root] = [one for one in server.diagnoses if one.root]
    because = [line for line in lines if line.startswith("sglang:30000: because ")]
    assert len(because) >= 2
    assert any(line.startswith(f"sglang:30000: cause: {root.summary} ({root.key}") for line in lines)
    assert [line for line in lines if "remedy: " in line] == [
        f"sglang:30000: remedy: {remedy}" for remedy in root.remedy
    ]


def test_a_server_that_is_found_in_trouble_is_told_with_as_much() -> None:
    [lines] = told(states.stalled())
    assert any("because " in line for line in lines)
    assert any("cause: " in line for line in lines)


def test_quiet_for_longer_than_usual_is_told_and_so_is_its_end() -> None:
    base = states.capture()
    verdict = base.servers[0].verdict
    suspect = later(
        base, 60, verdict=msgspec.structs.replace(verdict, word="suspect", since_s=70, limit_s=120)
    )
    well = later(base, 70, verdict=msgspec.structs.replace(verdict, word="working"))
    _, first, then = told(base, suspect, well)
    assert (
        first[0] == "sglang:30000: verdict suspect, called stalled after 2:00 without progress · 1:10 so far"
    )
    assert then == ["sglang:30000: verdict working: it moves again"]


def test_each_readiness_signal_is_told_when_it_turns() -> None:
    _, lines = told(states.loading(), states.serving())
    signals = [line.split("signal ")[1] for line in lines if "signal " in line]
    assert {one.partition(",")[0] for one in signals} == {"log", "port", "health", "models", "token"}
    assert all(", yes: " in one for one in signals)


def test_steps_finer_than_the_rail_are_told() -> None:
    old = states.loading()
    parts = (
        Step(title="graphs target prefill", mark="done", took_s=39),
        Step(title="graphs target verify", mark="active"),
    )
    _, lines = told(old, later(old, 5, steps=parts))
    assert lines == [
        "sglang:30000: step graphs target prefill done after 39 s",
        "sglang:30000: step graphs target verify begins",
    ]


def test_the_end_of_a_server_and_of_an_alert_are_told() -> None:
    alone = states.capture()
    ended = later(alone, 1, gone_at=alone.now, processes=2)
    _, lines = told(alone, ended)
    assert lines == ["sglang:30000: its main process, pid 4242, has ended; 2 processes left"]
    calm = msgspec.structs.replace(states.stalled(), alerts=())
    _, over = told(states.stalled(), calm)
    assert over == [f"no longer so: {alert.text}" for alert in states.stalled().alerts]


def test_a_host_on_which_nothing_serves_says_so_at_first_sight() -> None:
    [lines] = told(states.no_server())
    assert "no server is running here" in lines
