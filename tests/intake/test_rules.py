"""Servers of every engine are known by their command lines; their counters are asked for where they are."""

from __future__ import annotations

import pytest

from specdash.intake.rules import default_rules
from specdash.monitor import frames
from specdash.monitor.commandline import launch_facts
from specdash.monitor.frames import Http
from specdash.monitor.memory import ServerMemory
from specdash.monitor.observe import observe, start
from specdash.monitor.samples import Process
from specdash.monitor.servers import discover
from specdash.monitor.wants import wants


def process(argv: str, pid: int = 10, ppid: int = 1, **more: object) -> Process:
    return Process(pid=pid, ppid=ppid, start=pid, started=1000.0 + pid, argv=tuple(argv.split()), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("argv", "engine", "port", "model"),
    [
        ("/opt/bin/llama-server -m /models/x.gguf --port 8081", "llamacpp", 8081, None),
        ("llama-server -hf org/model", "llamacpp", None, None),
        ("text-generation-launcher --model-id org/m --port 3000", "tgi", 3000, "org/m"),
        (
            "/v/bin/python3 /v/bin/lmdeploy serve api_server org/m --server-port 23334",
            "lmdeploy",
            23334,
            "org/m",
        ),
        ("python3 -m lmdeploy serve api_server org/m", "lmdeploy", None, "org/m"),
        ("/v/bin/python3 /v/bin/trtllm-serve serve org/m --port 8355", "trtllm", 8355, "org/m"),
        ("/v/bin/python3.11 /v/bin/transformers serve /srv/m --port 8102", "transformers", 8102, "/srv/m"),
        ("vim llama-server.log", None, None, None),
        ("docker run ghcr.io/x text-generation-launcher --model-id m", None, None, None),
        ("tail -f /var/log/trtllm-serve", None, None, None),
        ("/usr/bin/llama-server-wrapper", None, None, None),
    ],
)
def test_a_server_is_known_by_its_command_line(
    argv: str, engine: str | None, port: int | None, model: str | None
) -> None:
    found = discover([process(argv)], default_rules().titles)
    assert [family.engine for family in found] == ([engine] if engine else [])
    if engine:
        facts = launch_facts(tuple(argv.split()))
        assert (facts.port, facts.model) == (port, model)


def test_the_shards_of_a_launcher_belong_to_it_and_its_router_is_an_orphan_without_it() -> None:
    main = process("text-generation-launcher --model-id m", 10)
    shard = process("/opt/conda/bin/python3.11 /opt/conda/bin/text-generation-server serve m", 11, 10)
    router = process("/usr/local/bin/text-generation-router --port 80", 12, 10)
    (family,) = discover([main, shard, router], default_rules().titles)
    assert [member.pid for member in family.members] == [11, 12]
    (left,) = discover([process(" ".join(router.argv), 12, 1)], default_rules().titles)
    assert (left.engine, left.orphaned) == ("tgi", True)


def asked(argv: str, port: int) -> set[str]:
    """Which paths a ready server of this kind is asked."""
    memory = start("box", default_rules())
    memory = observe(memory, frames.Processes(at=2000.0, list=(process(argv, ports=(port,)),)))
    (server,) = memory.servers
    for at, path in ((2001.0, "/health"), (2002.0, "/v1/models")):
        answer = Http(at=at, server=server.key, path=path, status=200, body="{}", ms=1.0)
        memory = observe(memory, answer)
    return {call.path for plan in wants(memory).polls for call in plan.calls}


@pytest.mark.parametrize(
    ("argv", "port", "counters"),
    [
        ("vllm serve m", 8000, "/metrics"),
        ("llama-server -m x", 8080, "/metrics"),
        ("lmdeploy serve api_server m", 23333, "/metrics/"),
        ("trtllm-serve m", 8000, None),
        ("transformers serve m", 8000, None),
    ],
)
def test_counters_are_asked_for_where_the_engine_has_them_and_never_where_that_consumes_them(
    argv: str, port: int, counters: str | None
) -> None:
    pages = {path for path in asked(argv, port) if "metrics" in path}
    assert pages == ({counters} if counters else set())


def test_a_page_without_token_counters_accuses_nobody() -> None:
    memory = start("box", default_rules())
    memory = observe(memory, frames.Processes(at=2000.0, list=(process("llama-server -m x", ports=(8080,)),)))
    key = memory.servers[0].key
    page = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 2\n"
    for at in (2001.0, 2006.0, 2011.0):
        memory = observe(memory, Http(at=at, server=key, path="/metrics", status=200, body=page, ms=1.0))
    server: ServerMemory = memory.servers[0]
    assert (server.figures.running, server.figures.waiting) == (1, 2)
    assert server.moved.tokens_at is None, "that no token was counted says nothing of a running request"
