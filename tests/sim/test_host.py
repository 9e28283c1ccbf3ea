"""The simulated host as its operator meets it. Every test starts a real one."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys

import httpx
import pytest

from specdash.monitor import frames
from specdash.sim.folder import BENCHMARK_BYTES
from specdash.sim.simulate import simulate
from tests.sim.guest import agent, http, members, pid_of, records, ssh, title, turn, until, written_at

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("ssh") is None,
    reason="needs Linux and OpenSSH's client",
)


RESTART = b"""
import os, signal, subprocess, sys
here = "/proc/" + sys.argv[1] + "/"
argv = open(here + "cmdline", "rb").read().split(b"\\0")[:-1]
env = dict(pair.split(b"=", 1) for pair in open(here + "environ", "rb").read().split(b"\\0") if pair)
cwd, log = os.readlink(here + "cwd"), open(os.readlink(here + "fd/1"), "ab")
os.kill(int(sys.argv[1]), signal.SIGKILL)
null = subprocess.DEVNULL
subprocess.Popen(argv, env=env, cwd=cwd, stdin=null, stdout=log, stderr=log, start_new_session=True)
"""
"""What a restart without a profile knows of a server, and does."""


async def test_plain_ssh_runs_commands_on_it_and_leads_nowhere_else() -> None:
    async with simulate("zombie") as sim:
        assert await ssh(sim, "echo $HOME; exit 3") == (3, f"{sim.folder / 'home'}\n")
        assert await ssh(sim, "cat", stdin=b"through stdin\n") == (0, "through stdin\n")
        status, said = await ssh(sim, "kill -9 $$")
        assert status == 255
        status, said = await ssh(sim, "ls -l $TMPDIR/benchmark_eagle3.py")
        assert str(BENCHMARK_BYTES) in said
        status, said = await ssh(sim, "cat", stdin=b"x" * 3_000_000)
        assert len(said) == 3_000_000
        process = await asyncio.create_subprocess_exec(
            *("ssh", "-F", str(sim.ssh_config), "-W", "192.0.2.1:80", sim.target),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, refused = await process.communicate()
        assert b"administratively prohibited" in refused


async def test_a_terminal_has_a_size_and_a_shell() -> None:
    async with simulate("zombie") as sim:
        process = await asyncio.create_subprocess_exec(
            *("ssh", "-tt", "-F", str(sim.ssh_config), sim.target),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        said, _ = await process.communicate(b"tty\nexit 5\n")
        assert process.returncode == 5
        assert b"/dev/pts/" in said


async def test_a_healthy_start_refuses_then_answers_503_then_200_and_serves() -> None:
    seen: list[str | int] = []
    async with simulate("healthy", speed=100, serving_speed=100) as sim, http(sim) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("/health")
        await until(lambda: "Load weight begin" in sim.log.read_text())
        # The port opens 1264 s later and serves after 25 more: then the clock goes so slowly that it is seen.
        turn(sim, 4, at=written_at(sim.log, "Load weight begin") + 1240)
        while 200 not in seen:
            try:
                answer: str | int = (await client.get("/health")).status_code
            except httpx.ConnectError:
                answer = "refused"
            if not seen or seen[-1] != answer:
                seen.append(answer)
            if answer == 503:
                assert (await client.get("/v1/models")).status_code == 200  # no sign of readiness
            await asyncio.sleep(0.01)
        assert seen == ["refused", 503, 200]

        await _serves(client)
        assert (await client.get("/ready")).status_code == 404
        assert (await client.get("/server_info")).json()["version"] == "0.5.16"
        said = [message for _, message in records(sim.log)]
        ready = said.index("The server is fired up and ready to roll!")
        order = [
            "Init torch distributed begin.",
            "Load weight begin",
            "KV Cache is",
            "Capture target",
            "INFO:     Uvicorn",
        ]
        places = [next(n for n, text in enumerate(said) if text.startswith(words)) for words in order]
        assert [*places, ready] == sorted([*places, ready])
        assert sum('"GET /health HTTP/1.1" 503 Service Unavailable' in text for text in said) >= 1
        raw = sim.log.read_bytes()
        assert b"\r\n" not in raw
        assert b"\n\r  0%|" in raw


async def _serves(client: httpx.AsyncClient) -> None:
    before = _counter((await client.get("/metrics")).text)
    body = {"prompt": "hello", "max_tokens": 40, "stream": True, "stream_options": {"include_usage": True}}
    async with client.stream("POST", "/v1/completions", json=body) as stream:
        lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line]
    assert lines[-1] == "[DONE]"
    assert json.loads(lines[-2])["usage"]["completion_tokens"] == 40
    assert json.loads(lines[-3])["choices"][0]["finish_reason"] == "length"
    one = await client.post("/v1/chat/completions", json={"messages": [], "max_tokens": 1})
    assert one.json()["usage"]["completion_tokens"] == 1
    assert one.json()["choices"][0]["message"]["content"]
    assert (await client.post("/v1/completions", content=b"no json")).status_code == 400
    assert _counter((await client.get("/metrics")).text) >= before + 41
    loads = (await client.get("/v1/loads?include=all")).json()["loads"][0]
    assert loads["max_total_num_tokens"] > 262144


def _counter(text: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith("sglang:generation_tokens_total"))
    return float(line.split()[-1])


async def test_the_zombie_is_eight_hours_old_to_an_agent_and_its_cards_tell_who_is_guilty() -> None:
    async with simulate("zombie") as sim, agent(sim) as guest:
        hello = await guest.hear(frames.Hello)
        assert (hello.host, hello.simulated) == ("gpubox", True)
        guest.ask(r="tail", path=str(sim.log), backlog=1 << 20, cursor=None)
        cards = (await guest.hear(frames.Gpus, lambda f: f.cards and f.cards[7].util is not None)).cards
        assert [card.used_mib for card in cards] == [76 * 1024] * 8
        assert [card.util for card in cards] == [100, 100, 100, 0, 100, 100, 100, 100]
        assert all(card.power_w and card.power_w < 200 for card in cards)

        heard = await guest.hear(frames.Processes, lambda f: len(f.list) == 11)
        main = next(p for p in heard.list if "sglang.launch_server" in p.argv)
        ranks = {p.argv[0]: p for p in heard.list if p.argv[0].startswith("sglang::scheduler")}
        assert sorted(ranks) == [f"sglang::scheduler_TP{n}" for n in range(8)]
        assert main.ppid == 1
        assert heard.at - main.started == pytest.approx(8 * 3600, abs=600)
        assert (main.out, main.err) == (str(sim.log), str(sim.log))
        assert {p.pid for p in ranks.values()} == {p.pid for card in cards for p in card.processes or ()}
        assert [p.state for p in ranks.values()] == ["R"] * 3 + ["S"] + ["R"] * 4
        assert all(p.env_blanked for p in ranks.values())
        assert main.env is not None
        assert main.env["NCCL_PROTO"] == "LL"

        log = await guest.hear(frames.Log)
        assert 7 * 3600 < log.at - log.mtime < 8 * 3600
    with pytest.raises(httpx.ConnectError):
        async with http(sim) as client:
            await client.get("/health")


async def test_a_killed_zombie_leaves_76_gib_on_gpu_1_and_the_next_start_is_another_one() -> None:
    async with simulate("zombie", speed=2) as sim, agent(sim) as guest:
        heard = await guest.hear(frames.Processes, lambda f: len(f.list) == 11)
        main = next(p for p in heard.list if "sglang.launch_server" in p.argv)
        guest.forget()
        assert await ssh(sim, f"python3 - {main.pid}", stdin=RESTART) == (0, "")
        left = [0, 76 * 1024, 0, 0, 0, 0, 0, 0]
        freed = await guest.hear(frames.Gpus, lambda f: [card.used_mib for card in f.cards] == left)
        assert {card.util for card in freed.cards} == {0}
        [named] = freed.cards[1].processes
        assert title(named.pid) == "", "NVML goes on naming the dead rank"
        fresh = await guest.hear(
            frames.Processes, lambda f: any(p.argv == main.argv and p.pid != main.pid for p in f.list)
        )
        assert fresh.at - max(p.started for p in fresh.list if p.argv == main.argv) < 600
        turn(sim, 100)
        await guest.hear(frames.Gpus, lambda f: all((card.used_mib or 0) > 60_000 for card in f.cards))


async def test_a_forked_helper_keeps_the_memory_of_one_card_until_it_is_killed() -> None:
    async with simulate("orphan") as sim, agent(sim) as guest:
        gpus = await guest.hear(frames.Gpus, lambda f: f.cards and f.cards[1].used_mib)
        assert [card.used_mib for card in gpus.cards] == [0, 76 * 1024, 0, 0, 0, 0, 0, 0]
        heard = await guest.hear(frames.Processes, lambda f: f.list)
        (helper,) = heard.list
        guest.forget()
        assert helper.ppid == 1
        assert helper.argv == ("sglang::scheduler_TP1",)
        assert await ssh(sim, f"kill -9 {helper.pid}") == (0, "")
        await guest.hear(frames.Gpus, lambda f: not any(card.used_mib for card in f.cards))


async def test_a_rank_stopped_while_serving_freezes_tokens_and_lets_them_go_on() -> None:
    async with simulate("healthy", speed=400, serving_speed=100) as sim, http(sim) as client:
        await _until_ready(client)
        rank = pid_of(sim, "sglang::scheduler_TP2")
        assert (await ssh(sim, f"kill -STOP {rank}"))[0] == 0
        while (await client.get("/health")).status_code != 503:
            pass  # it answers after a second of the host's clock
        first = (await client.get("/v1/loads?include=all")).json()
        tokens = _counter((await client.get("/metrics")).text)
        assert (await client.get("/health")).status_code == 503
        second = (await client.get("/v1/loads?include=all")).json()
        assert second["loads"][0]["timestamp"] == first["loads"][0]["timestamp"]
        assert second["timestamp"] > first["timestamp"]
        assert _counter((await client.get("/metrics")).text) == tokens
        assert (await client.get("/v1/models")).status_code == 200
        assert (await ssh(sim, f"kill -CONT {rank}"))[0] == 0
        one = await client.post("/v1/completions", json={"prompt": "x", "max_tokens": 1})
        assert one.json()["usage"]["completion_tokens"] == 1
        assert (await client.get("/health")).status_code == 200


async def test_a_sigterm_drains_before_the_server_ends_itself() -> None:
    async with simulate("healthy", speed=400, serving_speed=100) as sim, http(sim) as client:
        await _until_ready(client)
        await ssh(sim, f"kill -TERM {pid_of(sim, 'sglang.launch_server')}")
        await until(lambda: not members(sim))
        said = [message for _, message in records(sim.log)]
        assert said[-1].startswith("kill_process_tree called")
        assert any(text.startswith("SIGTERM received.") for text in said)
        assert any(text.startswith("Gracefully exiting... Remaining number of requests 0.") for text in said)


async def test_a_rank_killed_during_the_load_ends_the_start() -> None:
    async with simulate("healthy", speed=20) as sim:
        await until(lambda: "Load weight begin" in sim.log.read_text())
        await ssh(sim, f"kill -9 {pid_of(sim, 'sglang::scheduler_TP6')}")
        await until(lambda: not members(sim))
        text = sim.log.read_text()
        assert "Rank 6 scheduler died during initialization (exit code: -9)." in text


async def test_a_short_draft_ends_the_start_until_its_config_is_patched() -> None:
    async with simulate("mismatch", speed=1500) as sim:
        await until(lambda: "Load weight begin" in sim.log.read_text())
        await until(lambda: not members(sim))
        error = "ValueError: Warning: Target model's context_length (262144) is greater than the derived"
        assert error in sim.log.read_text()
        config = sim.folder / "models" / "draft" / "config.json"
        assert json.loads(config.read_text())["max_position_embeddings"] == 131072


async def _until_ready(client: httpx.AsyncClient) -> None:
    while True:
        try:
            if (await client.get("/health")).status_code == 200:
                return
        except httpx.ConnectError:
            pass
        await asyncio.sleep(0.02)
