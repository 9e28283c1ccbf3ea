from __future__ import annotations

import pytest

from specdash.engines.grammar import Grammar, GrammarError, Rule
from specdash.engines.loader import grammars, parse, shipped
from specdash.monitor.records import parse as record_of

EXAMPLES = [
    (grammar, rule, example)
    for grammar in shipped()
    for rule in (*grammar.rules, *grammar.bars)
    for example in rule.marker.examples
]

SMALL = """
name = "toy"
title = "Toy"
[lines]
prefix = '^\\[(?P<time>[^]]+)\\] '
"""


def speaks(grammar: Grammar, rule: Rule, example: str) -> bool:
    record = record_of(example.encode(), 1, grammar)
    if rule in grammar.bars:
        return rule.regex.search(record.text) is not None
    return (record.begins or rule.bare) and rule.regex.search(record.text) is not None


@pytest.mark.parametrize(
    ("grammar", "rule", "example"),
    EXAMPLES,
    ids=[f"{g.name}-{r.marker.name}-{e[:40]}" for g, r, e in EXAMPLES],
)
def test_each_example_is_taken_by_its_marker_and_no_other(grammar: Grammar, rule: Rule, example: str) -> None:
    takers = [
        other.marker.name for other in (*grammar.rules, *grammar.bars) if speaks(grammar, other, example)
    ]
    assert takers == [rule.marker.name]


@pytest.mark.parametrize(
    ("grammar", "rule", "example"),
    EXAMPLES,
    ids=[f"{g.name}-{r.marker.name}-{e[:40]}" for g, r, e in EXAMPLES],
)
def test_each_example_is_found_in_its_bytes(grammar: Grammar, rule: Rule, example: str) -> None:
    raw = example.encode()
    assert grammar.sought.search(raw)
    if rule in grammar.bars:
        assert grammar.bar_sought.search(raw)
    else:
        assert rule in grammar.candidates(raw)


@pytest.mark.parametrize("grammar", shipped(), ids=lambda grammar: grammar.name)
def test_every_marker_has_an_example(grammar: Grammar) -> None:
    assert [rule.marker.name for rule in (*grammar.rules, *grammar.bars) if not rule.marker.examples] == []


@pytest.mark.parametrize(
    ("line", "engine"),
    [
        ("[2026-11-02 10:00:09 TP0] Init parallel begin.", "sglang"),
        ("[2026-11-02 10:00:09 DP1 TP1] anything", "sglang"),
        ("[2026-11-02 10:00:00] server_args={'port': 1}", "sglang"),
        ("INFO 05-12 16:54:16 [api_server.py:1043] vLLM API server version 0.8.5", "vllm"),
        (
            "\x1b[0;36m(EngineCore pid=4)\x1b[0;0m \x1b[32mINFO\x1b[0m 09-01 10:00:01 [a.py:1] x",
            "vllm",
        ),
        ("(VllmWorker rank=0 pid=512) ERROR 05-29 08:01:10 [x.py:522] KeyError", "vllm"),
        ("[2026-11-02 10:00:09] somebody else's program", None),
        ("2026-11-02 10:00:09 INFO nginx: started", None),
    ],
)
def test_the_first_lines_tell_the_engine(line: str, engine: str | None) -> None:
    from specdash.monitor.reader import begin, read

    assert read(begin(shipped()), line.encode() + b"\n").engine == engine


def test_the_limits_of_hot_lines_agree_with_the_markers() -> None:
    for grammar in shipped():
        if grammar.hot is None:
            continue
        for rule in grammar.rules:
            for example in rule.marker.examples:
                hot = grammar.hot.match(example.encode())
                if hot is not None and hot.lastgroup == "figures":
                    assert rule.marker.kind == "figures"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "line 1: no value that TOML knows"),
        (SMALL + "dark = [1", "line 6: not TOML: Unclosed array"),
        (SMALL + "colour = 1\n", "colour"),
        (SMALL.replace("'^", "'(^"), "lines.prefix"),
        (
            SMALL + '[[marker]]\nname="a"\nseek=["x"]\nmatch="x"\nexamples=["x"]\n',
            "a milestone needs phase and event",
        ),
        (
            SMALL + '[[marker]]\nname="a"\nkind="stop"\nseek=["x"]\nmatch="("\nexamples=["x"]\n',
            "marker 'a': match",
        ),
        (SMALL + '[[marker]]\nname="a"\nkind="stopp"\nseek=["x"]\nmatch="x"\nexamples=["x"]\n', "stopp"),
        (
            SMALL + '[[marker]]\nname="a"\nkind="stop"\nseek=["y"]\nmatch="x"\nexamples=["x"]\n',
            "nothing sought",
        ),
        (
            SMALL + 2 * '[[marker]]\nname="a"\nkind="stop"\nseek=["x"]\nmatch="x"\nexamples=["x"]\n',
            "stands there twice",
        ),
        (SMALL.replace("title", "order=['boot']\ntitle"), "order"),
        ("include = ['nginx']\n" + SMALL, "include: 'nginx' is none of uvicorn"),
    ],
)
def test_a_broken_grammar_is_refused_with_file_and_key(text: str, says: str) -> None:
    with pytest.raises(GrammarError, match=r"^mine\.toml: ") as error:
        parse("mine.toml", text)
    assert says in str(error.value)


def test_a_grammar_of_the_users_replaces_ours_of_the_same_name() -> None:
    own = [parse("toy.toml", SMALL), parse("sglang.toml", SMALL.replace('"toy"', '"sglang"'))]
    mine = grammars(own)
    assert [grammar.name for grammar in mine][:3] == ["toy", "sglang", "vllm"]
    assert len(mine) == len(shipped()) + 1
    assert mine[1].rules == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SMALL + "colour = 1\n", 6),
        (SMALL.replace("'^", "'(^"), 5),
        (SMALL + '[[marker]]\nname="a"\nkind="stop"\nseek=["x"]\nmatch="("\nexamples=["x"]\n', 10),
        (SMALL + 2 * '[[marker]]\nname="b"\nseek=["x"]\nmatch="x"\nexamples=["x"]\nkind="odd"\n', 11),
        (SMALL + '[[marker]]\nname="a"\nkind="stop"\nseek=["x"]\nmatch=1\nexamples=["x"]\n', 10),
    ],
)
def test_a_broken_grammar_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(GrammarError, match=rf"^mine\.toml: line {line}: "):
        parse("mine.toml", text)


@pytest.mark.parametrize(
    ("log", "engine"),
    [
        ("srv    load_model: loading model '/models/x.gguf'", "llamacpp"),
        (
            "2025-07-04T12:35:58.312507Z  INFO text_generation_launcher: Starting Webserver",
            "tgi",
        ),
        ("[TensorRT-LLM] TensorRT LLM version: 1.2.0rc2", "trtllm"),
        (
            "2025-07-08 11:20:26,869 - lmdeploy - WARNING - __init__.py:10 - Disable DLSlime Backend",
            "lmdeploy",
        ),
        ("[transformers] Loading /srv/models/tiny-llama@main", "transformers"),
        ("INFO:     Started server process [20596]", None),
    ],
)
def test_other_engines_are_known_by_their_first_lines(log: str, engine: str | None) -> None:
    from specdash.monitor.reader import begin, read

    assert read(begin(shipped()), log.encode() + b"\n").engine == engine


TGI = "2025-07-04T12:35:58.312507Z  INFO"
STARTS = {
    "llamacpp": (
        "main: HTTP server is listening, hostname: 127.0.0.1, port: 8081, http threads: 7",
        "srv    load_model: loading model '/models/x.gguf'",
        "load_tensors: offloaded 36/36 layers to GPU",
        "main: model loaded",
        "main: server is listening on http://127.0.0.1:8081 - starting the main loop",
    ),
    "tgi": (
        f'{TGI} text_generation_launcher: Args {{ model_id: "/models/x", revision: None',
        f"{TGI} shard-manager: text_generation_launcher: Starting shard rank=0",
        f"{TGI} shard-manager: text_generation_launcher: Shard ready in 48.277857716s rank=0",
        f"{TGI} text_generation_launcher: Starting Webserver",
        f"{TGI} text_generation_router::server: router/src/server.rs:2298: Connected",
    ),
    "trtllm": (
        "[TensorRT-LLM] TensorRT LLM version: 1.2.0rc2",
        "Loading weights: 100%|██████████| 801/801 [00:46<00:00, 17.29it/s]",
        "Model init total -- 49.14s",
        "[12/20/2025-04:21:37] [TRT-LLM] [I] Creating CUDA graph instances for 11 batch sizes.",
        "INFO:     Application startup complete.",
    ),
    "lmdeploy": (
        "2025-07-08 11:20:26,869 - lmdeploy - WARNING - __init__.py:10 - Disable DLSlime Backend",
        "Loading weights from safetensors:  40%|████      | 2/5 [00:06<00:10,  3.32s/it]",
        "Loading weights from safetensors: 100%|██████████| 5/5 [00:16<00:00,  3.32s/it]",
        "INFO:     Application startup complete.",
        "INFO:     Uvicorn running on http://0.0.0.0:23333 (Press CTRL+C to quit)",
    ),
    "transformers": (
        "[transformers] Loading /srv/models/tiny-llama@main",
        "Loading weights: 100%|██████████| 39/39 [00:00<00:00, 22183.06it/s]",
        "INFO:     Started server process [20596]",
        "INFO:     Application startup complete.",
        "INFO:     Uvicorn running on http://127.0.0.1:8102 (Press CTRL+C to quit)",
    ),
}


@pytest.mark.parametrize("engine", STARTS)
def test_a_start_of_another_engine_is_loading_first_and_ready_at_its_end(engine: str) -> None:
    from specdash.monitor.reader import begin, finish, read

    lines = [line.encode() + b"\n" for line in STARTS[engine]]
    loading = finish(read(begin(shipped()), b"".join(lines[: 1 if engine == "transformers" else 2])))
    assert (loading.engine, loading.phase, loading.ready_line) == (engine, "weights", None)
    whole = finish(read(begin(shipped()), b"".join(lines)))
    assert whole.phase == "serving"
    assert whole.ready_line is not None
    assert whole.crash_line is None
