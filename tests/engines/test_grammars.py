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
    from specdash.monitor.reading import begin, read

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
        ("name = ", "not TOML"),
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
    ],
)
def test_a_broken_grammar_is_refused_with_file_and_key(text: str, says: str) -> None:
    with pytest.raises(GrammarError, match=r"^mine\.toml: ") as error:
        parse("mine.toml", text)
    assert says in str(error.value)


def test_a_grammar_of_the_users_replaces_ours_of_the_same_name() -> None:
    mine = grammars([("toy.toml", SMALL), ("sglang.toml", SMALL.replace('"toy"', '"sglang"'))])
    assert [grammar.name for grammar in mine] == ["toy", "sglang", "vllm", "generic"]
    assert mine[1].rules == ()
