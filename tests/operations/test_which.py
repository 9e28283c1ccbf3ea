"""Which server ``--server`` means."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.state import Server
from specdash.operations.which import Ambiguous, NoServer, Wanted, absent, choose
from specdash.profile.loading import parse
from tests.tui import states

PROFILE = parse("""
[hosts.gpubox]
target = "root@gpubox"
[hosts.dgx]
target = "root@dgx"
[servers.main]
host = "gpubox"
engine = "sglang"
command = ["python3", "-m", "sglang.launch_server", "--port", "30000"]
[servers.second]
host = "gpubox"
engine = "vllm"
command = ["vllm", "serve", "/m", "--port=8000"]
[hosts.lone]
target = "root@lone"
[servers.bare]
host = "lone"
engine = "vllm"
command = ["vllm", "serve", "/m"]
[servers.elsewhere]
host = "dgx"
engine = "vllm"
command = ["vllm", "serve", "/m", "--port", "8000"]
""")
SGLANG, VLLM = states.two_servers().servers


def wanted(word: str, host: str | None = "gpubox") -> Wanted:
    found = Wanted.of(word, PROFILE, (host,))
    assert found is not None
    return found


def gone(server: Server) -> Server:
    return msgspec.structs.replace(server, gone_at=1.0, processes=0)


@pytest.mark.parametrize("word", ["second", "vllm:8000", "8000", str(VLLM.pid)])
def test_a_name_of_the_profile_or_of_the_screen_a_port_and_a_pid_all_mean_the_same_server(word: str) -> None:
    assert choose([SGLANG, VLLM], wanted(word)) is VLLM
    assert wanted(word).described([SGLANG, VLLM]) == "second"
    assert wanted(word).on_screen([SGLANG, VLLM]) == "vllm:8000"


@pytest.mark.parametrize("word", ["second", "vllm:8000", "8000"])
def test_one_that_does_not_run_is_still_known_by_what_the_profile_tells(word: str) -> None:
    assert wanted(word).described([SGLANG]) == "second"
    assert wanted(word).on_screen([SGLANG]) in ("vllm:8000", word)
    with pytest.raises(NoServer, match=f"^no server {word} here "):
        choose([SGLANG, gone(VLLM)], wanted(word))


def test_a_name_of_the_profile_means_a_server_of_its_own_host_alone() -> None:
    for host in ("gpubox", None):
        with pytest.raises(NoServer):
            choose([SGLANG, VLLM], wanted("elsewhere", host))
    assert choose([VLLM], wanted("elsewhere", "dgx")) is VLLM


def test_a_servers_name_in_the_profile_comes_before_a_model_of_that_name() -> None:
    misled = msgspec.structs.replace(SGLANG, model="second")
    assert choose([misled, VLLM], wanted("second")) is VLLM


def test_a_name_of_the_profile_means_no_server_that_is_only_like_it() -> None:
    leftover = msgspec.structs.replace(VLLM, name="vllm", port=None, orphaned=True)
    other = msgspec.structs.replace(VLLM, name="vllm:8001", port=8001)
    with pytest.raises(NoServer):
        choose([leftover, other], wanted("second"))
    with pytest.raises(NoServer):
        choose([other], wanted("bare", "lone"))
    assert choose([other, VLLM], wanted("bare", "lone")) is VLLM, "vLLM's own port, where none is given"


def test_two_servers_of_one_name_are_told_apart_by_their_pids() -> None:
    twin = msgspec.structs.replace(VLLM, key="twin", pid=99)
    assert choose([VLLM, twin], wanted("99")) is twin
    assert wanted("99").on_screen([VLLM, twin]) == "99", "the name would mean both"
    with pytest.raises(Ambiguous) as refused:
        choose([VLLM, twin], wanted("vllm:8000"))
    assert refused.value.exit_code == 4
    assert "pid 99" in str(refused.value)


def test_of_dozens_of_servers_only_a_few_are_named() -> None:
    many = [msgspec.structs.replace(SGLANG, name=f"sglang:{port}", port=port) for port in range(1, 206)]
    assert absent(Wanted("no\x1b[2Jsuch"), many) == (
        "no server nosuch here: sglang:1, sglang:2, sglang:3, sglang:4, 201 more"
    )
    with pytest.raises(Ambiguous, match="201 more"):
        choose(many, None)
