"""A session that watches for weeks keeps the logs of the servers that it shows, and no others."""

from __future__ import annotations

from typing import Any

from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from tests.remote.doubles import FakeClock, FakeTransport, running, settle

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
        assert 1 <= len(shown) <= 24, "one that lives, three that ended, twenty whose end nobody acknowledged"
        tailed = {r["path"] for r in transport.channel.requests if r["r"] == "tail"}
        untailed = [r["path"] for r in transport.channel.requests if r["r"] == "untail"]
        assert tailed - set(untailed) == shown
        assert len(untailed) == LAUNCHES - len(shown)
        assert f"/var/log/vllm-{LAUNCHES}.log" in shown
        assert "/var/log/vllm-1.log" in untailed, "the oldest go first"


async def test_a_log_that_was_asked_for_by_name_is_kept_without_any_server() -> None:
    session = Session(parse_target("box"), SessionOptions(log="/var/log/x.log"))
    clock = FakeClock()
    session._link._clock, session._link._transport = clock, (transport := FakeTransport(clock))
    async with running(session._link):
        await settle()
        assert {r["path"] for r in transport.channel.requests if r["r"] == "tail"} == {"/var/log/x.log"}
