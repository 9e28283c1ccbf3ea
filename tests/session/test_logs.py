"""A session that watches for weeks keeps the logs of the servers that it shows, and no others."""

from __future__ import annotations

import base64
from typing import Any

from specdash.logs.buffer import LogBuffer
from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from tests.logs.jsonfiles import json_file
from tests.monitor.logs_of import told
from tests.remote.doubles import FakeChannel, FakeClock, FakeTransport, running, settle

LAUNCHES = 45


def _server(pid: int, log: str) -> dict[str, Any]:
    return {
        **{"pid": pid, "ppid": 1, "start": pid, "started": 1.0, "sid": pid, "state": "S"},
        **{"argv": ["vllm", "serve", "m"], "out": log, "err": log},
    }


async def test_the_log_of_a_server_that_is_no_longer_shown_is_let_go() -> None:
    session = Session(parse_target("box"), SessionOptions())
    clock = FakeClock()
    session._link._clock, session._link._transport = clock, (transport := FakeTransport(clock))
    async with running(session._link):
        for start in range(1, LAUNCHES + 1):
            path = f"/var/log/vllm-{start}.log"
            await clock.pass_(1.0)
            transport.channel.say("processes", list=[_server(100 + start, path)])
            await settle()
            transport.channel.say("log", path=path, file=f"1:{start}", offset=0, size=5, text="line\n")
            await settle()
        key = session.state.servers[0].key
        buffer = session.log(key)
        assert buffer is not None
        assert buffer.text(1) == "line"
        shown = {server.log.path for server in session.state.servers if server.log}
        assert set(session._logs._buffers) == shown
        assert 1 <= len(shown) <= 29, "one that lives, eight that ended, twenty whose end nobody acknowledged"
        tailed = {r["path"] for r in transport.channel.requests if r["r"] == "tail"}
        untailed = [r["path"] for r in transport.channel.requests if r["r"] == "untail"]
        assert tailed - set(untailed) == shown
        assert len(untailed) == LAUNCHES - len(shown)
        assert f"/var/log/vllm-{LAUNCHES}.log" in shown
        assert f"/var/log/vllm-{LAUNCHES - 12}.log" in untailed
        assert "/var/log/vllm-1.log" in shown, "its view stays until its end is acknowledged"


async def test_a_log_that_was_asked_for_by_name_is_kept_without_any_server() -> None:
    session = Session(parse_target("box"), SessionOptions(log="/var/log/x.log"))
    clock = FakeClock()
    session._link._clock, session._link._transport = clock, (transport := FakeTransport(clock))
    async with running(session._link):
        await settle()
        assert {r["path"] for r in transport.channel.requests if r["r"] == "tail"} == {"/var/log/x.log"}


async def test_after_a_lost_link_a_log_goes_on_once_it_was_looked_at_who_writes_it_now() -> None:
    path = "/var/log/vllm.log"
    session = Session(parse_target("box"), SessionOptions())
    clock = FakeClock()
    session._link._clock, session._link._transport = clock, (transport := FakeTransport(clock))

    def asked() -> list[str]:
        return [r["path"] for r in transport.channel.requests if r["r"] == "tail"]

    async with running(session._link):
        await settle()
        for readable in (True, False):
            transport.channel.say("processes", list=[_server(100, path)])
            await settle()
            assert asked() == [path]
            transport.channel.abort()
            await clock.pass_(5.0)
            assert asked() == []
            if readable:
                transport.channel.say("processes", list=[_server(101, path)])
            else:
                transport.channel.say("beat", n=3)
            await settle()
            assert asked() == [path]


DOCKER = f"/var/lib/docker/containers/{'ab' * 32}/{'ab' * 32}-json.log"
PIECE = 40_000


def _contained() -> dict[str, Any]:
    return {
        **{"pid": 700, "ppid": 1, "start": 700, "started": 1.0, "sid": 700, "state": "S"},
        **{"argv": ["python3", "-m", "sglang.launch_server", "--port", "30000"]},
        **{"out": "pipe:[1]", "err": "pipe:[2]", "cgroup": f"/docker/{'ab' * 32}"},
    }


async def _send(channel: FakeChannel, file: bytes, begin: int, end: int, **more: Any) -> int:
    """What the agent says of these bytes of the file, piece by piece; where it stands then."""
    for at in range(begin, end, PIECE):
        piece = file[at : min(end, at + PIECE)]
        data = base64.b64encode(piece).decode()
        channel.say("log", path=DOCKER, file="1:9", offset=at, size=len(file), data=data, **more)
        more = {}
        await settle()
    return end


async def test_what_docker_kept_is_read_as_the_server_wrote_it_and_goes_on_where_the_link_was_cut() -> None:
    plain = told("02-healthy-tp8-eagle3-v0.5.23.log").data * 40
    file = json_file(plain)
    middle = file.index(b"\n", len(file) // 2) - 30  # in a record
    session = Session(parse_target("box"), SessionOptions())
    clock = FakeClock()
    session._link._clock, session._link._transport = clock, (transport := FakeTransport(clock))
    async with running(session._link):
        await settle()
        transport.channel.say("processes", list=[_contained()])
        await settle()
        [asked] = [r for r in transport.channel.requests if r["r"] == "tail"]
        assert asked["path"] == DOCKER
        await _send(transport.channel, file, 0, middle, **{"break": "start"})
        acks = [r["offset"] for r in transport.channel.requests if r["r"] == "ack"]
        assert acks, "credit is given for bytes of the file: the agent waits for a megabyte of them"
        assert all(
            later - earlier <= (256 << 10) + PIECE for earlier, later in zip([0, *acks], acks, strict=False)
        )
        transport.channel.abort()
        await clock.pass_(5.0)
        transport.channel.say("processes", list=[_contained()])
        await settle()
        [again] = [r for r in transport.channel.requests if r["r"] == "tail"]
        assert again["cursor"]["offset"] == middle
        await _send(transport.channel, file, middle, len(file))
        [server] = session.state.servers
        assert (server.engine, server.state, server.phase) == ("sglang", "ready", "serving")
        buffer = session.log(server.key)
        assert isinstance(buffer, LogBuffer)
        lines = [line.rpartition(b"\r")[2] for line in plain.split(b"\n")[:-1]]
        assert buffer.lines == len(lines), "line numbers are those of docker logs"
        for number in (1, 2, len(lines) // 2, len(lines)):
            assert buffer.raw(number) == lines[number - 1]
