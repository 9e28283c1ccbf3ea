"""Which process is a server, and what its command line says."""

from __future__ import annotations

import pytest

from specdash.monitor.commandline import flag, launch_facts, program


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["python3", "-m", "sglang.launch_server", "--tp", "8"], "-m sglang.launch_server --tp 8"),
        (["/usr/bin/python3.11", "-u", "-X", "dev", "-m", "sglang.launch_server"], "-m sglang.launch_server"),
        (["/v/bin/python", "/v/bin/vllm", "serve", "/m"], "vllm serve /m"),
        (["/usr/local/bin/vllm", "serve", "/m"], "vllm serve /m"),
        (["VLLM::Worker_TP0"], "VLLM::Worker_TP0"),
        (["sglang::scheduler_TP3"], "sglang::scheduler_TP3"),
        (["python3", "-c", "import sys"], "-c import sys"),
        (["python3", "-um", "sglang.launch_server", "--tp", "2"], "-m sglang.launch_server --tp 2"),
        (["python3", "-msglang.launch_server"], "-m sglang.launch_server"),
        (["python3", "/src/sglang/launch_server.py", "--tp", "2"], "sglang/launch_server.py --tp 2"),
    ],
)
def test_the_program_is_what_the_interpreter_runs(argv: list[str], said: str) -> None:
    assert program(argv) == said


@pytest.mark.parametrize(
    "argv",
    [
        ["bash", "-c", "vllm serve /m > log 2>&1"],
        ["/usr/bin/tail", "-f", "vllm serve.log"],
        ["grep", "-r", "sglang.launch_server"],
        ["timeout", "600", "vllm", "serve", "/m"],
        ["docker", "run", "vllm/vllm-openai", "vllm", "serve"],
        ["vim", "sglang.launch_server"],
        [],
    ],
)
def test_a_shell_or_a_tool_that_names_a_server_is_none(argv: list[str]) -> None:
    assert program(argv) == ""


def test_sglang_with_eagle_is_read_from_its_flags() -> None:
    facts = launch_facts(
        "python3 -m sglang.launch_server --model-path /models/target --tp=8 --port 30001"
        " --speculative-algorithm EAGLE3 --speculative-num-steps 3".split()
    )
    assert (facts.port, facts.model, facts.speculation) == (30001, "/models/target", "EAGLE3 3 steps")
    assert (facts.parallel, facts.ranks) == ("TP8", 8)


def test_vllm_with_a_json_speculation_is_read_from_its_flags() -> None:
    config = '{"method":"eagle3","model":"/d","num_speculative_tokens":2}'
    facts = launch_facts(["vllm", "serve", "/models/t", "--speculative-config", config, "-tp", "2"])
    assert (facts.model, facts.speculation, facts.parallel) == ("/models/t", "EAGLE3 2 steps", "TP2")


def test_a_damaged_speculation_is_still_called_speculation() -> None:
    assert (
        launch_facts(["vllm", "serve", "/m", "--speculative-config", "{broken"]).speculation == "speculation"
    )


def test_the_last_of_two_flags_counts_and_a_missing_value_is_none() -> None:
    assert flag(["--port", "1", "--port=2"], "--port") == "2"
    assert flag(["--port", "--tp"], "--port") is None
