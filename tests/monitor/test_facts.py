from __future__ import annotations

import pytest

from specdash.engines.loader import shipped
from specdash.monitor.facts import Facts, read_arguments

SGLANG, VLLM, *_ = (grammar.spec.facts for grammar in shipped())


def test_sglangs_old_dump_is_read() -> None:
    facts = read_arguments(
        "server_args=ServerArgs(model_path='/models/target', tokenizer_path='/models/other', host='0.0.0.0', "
        "port=30000, nccl_port=None, served_model_name='big', tp_size=8, pp_size=1, dp_size=1, ep_size=4, "
        "api_key='x', speculative_algorithm='EAGLE3', speculative_draft_model_path='/models/draft', "
        "speculative_num_steps=3, json_model_override_args='{}', disable_cuda_graph=False)",
        Facts(),
        SGLANG,
    )
    assert (facts.model, facts.served_name, facts.bind, facts.port) == (
        "/models/target",
        "big",
        "0.0.0.0",
        30000,
    )
    assert (facts.parallel, facts.ranks, facts.speculation) == ("TP8 EP4", 8, "EAGLE3 3 steps")
    assert (facts.spec_draft, facts.skipped) == ("/models/draft", frozenset())


def test_sglangs_new_dump_is_read() -> None:
    facts = read_arguments(
        "server_args={'model_path': 'org/m', 'port': 30001, 'tp_size': 1}", Facts(), SGLANG
    )
    assert (facts.model, facts.port, facts.parallel, facts.speculation) == ("org/m", 30001, "TP1", None)


def test_vllms_arguments_and_engine_line_are_read_together() -> None:
    facts = read_arguments(
        "non-default args: {'model_tag': '/m', 'port': 8100, 'model': '/m', "
        "'served_model_name': ['tiny', 't'], "
        "'tensor_parallel_size': 2, 'speculative_config': {'method': 'eagle3', 'model': '/d', "
        "'num_speculative_tokens': 3}}",
        Facts(),
        VLLM,
    )
    facts = read_arguments(
        "Initializing a V1 LLM engine (v0.32.0) with config: model='/m', "
        "speculative_config=SpeculativeConfig(method='eagle3', model='/d', num_spec_tokens=3), "
        "tokenizer='/m', "
        "tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, enforce_eager=True",
        facts,
        VLLM,
    )
    assert (facts.model, facts.served_name, facts.port, facts.parallel) == ("/m", "tiny", 8100, "TP2")
    assert (facts.speculation, facts.spec_draft) == ("EAGLE3 3 tokens", "/d")
    assert facts.skipped == {"compile", "capture"}


def test_a_model_is_no_draft_where_nothing_speculates() -> None:
    facts = read_arguments("config: model='/m', speculative_config=None, tokenizer='/m'", Facts(), VLLM)
    assert (facts.model, facts.speculation, facts.spec_draft) == ("/m", None, None)


@pytest.mark.parametrize(
    ("arguments", "ranks"),
    [
        ("tp_size=8", 8),
        ("tp_size=8, pp_size=2", 16),
        ("tp_size=16, nnodes=2", 8),
        ("tp_size=4, dp_size=2", 8),
        ("tp_size=8, dp_size=8, enable_dp_attention=True", 8),
        ("port=1", None),
    ],
)
def test_the_ranks_of_this_host_follow_from_the_arguments(arguments: str, ranks: int | None) -> None:
    assert read_arguments(arguments, Facts(), SGLANG).ranks == ranks


def test_what_is_not_told_again_stays_known() -> None:
    facts = read_arguments("port=30000, tp_size=2", Facts(), SGLANG)
    assert read_arguments("host='::'", facts, SGLANG).port == 30000
