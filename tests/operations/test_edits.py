"""Editing one value of a file: that value changes, and not a byte besides."""

from __future__ import annotations

import json

import pytest

from specdash.operations.edits import EditError, apply, diff, format_of

CONFIG = """{
  "architectures": ["LlamaForCausalLMEagle3"],
  "bos_token_id": 163584,
  "draft_vocab_size": 32000,
  "eos_token_id": [163585, 163586],
  "hidden_act": "silu",
  "max_position_embeddings": 131072,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 64.0, "type": "yarn"},
  "rope_theta": 50000.0,
  "_name": "Kimi – Ünïcode \\u00e9 \U0001f319",
  "tie_word_embeddings": false,
  "big": 12345678901234567890123
}
"""


def edited(path: str, text: str, **values: str) -> str:
    edits = [(key.replace("__", "."), value) for key, value in values.items()]
    return apply(path, text.encode(), edits).decode()


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    return [(a, b) for a, b in zip(old, new, strict=True) if a != b]


def test_one_line_of_a_model_config_changes_and_every_other_byte_stays() -> None:
    after = edited("/m/config.json", CONFIG, max_position_embeddings="262144")
    assert changed_lines(CONFIG, after) == [
        ('  "max_position_embeddings": 131072,', '  "max_position_embeddings": 262144,')
    ]
    assert "1e-05" in after
    assert "12345678901234567890123" in after
    assert after.endswith("}\n")


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("rope_scaling__factor", "32.5", '  "rope_scaling": {"factor": 32.5, "type": "yarn"},'),
        ("eos_token_id__1", "7", '  "eos_token_id": [163585, 7],'),
        ("rms_norm_eps", "1e-6", '  "rms_norm_eps": 1e-6,'),
        ("hidden_act", "gelu", '  "hidden_act": "gelu",'),
        ("hidden_act", '"true"', '  "hidden_act": "true",'),
        ("hidden_act", "4", '  "hidden_act": "4",'),
        ("tie_word_embeddings", "true", '  "tie_word_embeddings": true,'),
        ("rope_scaling", "null", '  "rope_scaling": null,'),
        ("_name", "Tür 🌙", '  "_name": "Tür 🌙",'),
    ],
)
def test_a_value_is_written_as_the_operator_wrote_it(key: str, value: str, line: str) -> None:
    assert [new for _, new in changed_lines(CONFIG, edited("c.json", CONFIG, **{key: value}))] == [line]


def test_of_a_key_that_stands_twice_the_one_that_counts_is_changed() -> None:
    text = '{"a": 1, "b": {"a": 5}, "a": 2}'
    assert edited("c.json", text, a="3") == '{"a": 1, "b": {"a": 5}, "a": 3}'


def test_windows_line_ends_tabs_and_a_byte_order_mark_stay() -> None:
    text = '\ufeff{\r\n\t"a" :\t1 ,\r\n\t"b": [ ]\r\n}'
    assert edited("c.json", text, a="2") == text.replace("1 ,", "2 ,")


def test_a_misspelt_key_is_refused_with_the_nearest_right_word() -> None:
    with pytest.raises(EditError) as error:
        edited("/m/config.json", CONFIG, max_position_embedding="1")
    assert str(error.value) == (
        "/m/config.json: no key max_position_embedding (did you mean max_position_embeddings?)"
    )


def test_a_key_with_a_dot_in_its_name_is_found() -> None:
    text = '{"model.layers": {"x": 1}}'
    assert edited("c.json", text, model__layers__x="2") == text.replace("1", "2")


def test_what_is_no_json_is_not_touched() -> None:
    with pytest.raises(EditError, match="not JSON"):
        edited("c.json", "version https://git-lfs.github.com/spec/v1\n", a="1")
    with pytest.raises(EditError, match="not JSON"):
        edited("c.json", "[" * 200_000, a="1")
    with pytest.raises(EditError, match="not UTF-8"):
        apply("c.json", b'{"a": "\xff"}', [("a", "1")])


YAML_TEXT = """\
# how it is served
model: /models/target   # the big one
tensor-parallel-size: 8
env:
    - NCCL_ALGO: Ring
    - NCCL_PROTO: LL
nothing: ~
speculative-config: {method: eagle3, num_speculative_tokens: 3}
mode: "auto"
on: yes
base: &base 5
other: *base
block: |
  several
  lines
"""


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("tensor-parallel-size", "4", "tensor-parallel-size: 4"),
        ("model", "/models/other", "model: /models/other   # the big one"),
        ("model", "two words: yes", 'model: "two words: yes"   # the big one'),
        ("env__1__NCCL_PROTO", "Simple", "    - NCCL_PROTO: Simple"),
        ("nothing", "7", "nothing: 7"),
        (
            "speculative-config__num_speculative_tokens",
            "2",
            "speculative-config: {method: eagle3, num_speculative_tokens: 2}",
        ),
        ("mode", "none", 'mode: "none"'),
        ("model", "on", 'model: "on"   # the big one'),
        ("model", '"true"', 'model: "true"   # the big one'),
        ("tensor-parallel-size", "1e-05", "tensor-parallel-size: 1.0e-05"),
    ],
)
def test_one_line_of_a_yaml_file_changes_and_comments_stay(key: str, value: str, line: str) -> None:
    assert [new for _, new in changed_lines(YAML_TEXT, edited("c.yaml", YAML_TEXT, **{key: value}))] == [line]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("base", "anchor"),
        ("other", "anchor"),
        ("block", "block"),
        ("env", "not a single value"),
        ("modle", "did you mean mode"),
    ],
)
def test_a_yaml_value_that_is_shared_or_no_single_one_is_refused(key: str, why: str) -> None:
    with pytest.raises(EditError) as error:
        edited("c.yaml", YAML_TEXT, **{key: "1"})
    assert why in str(error.value)


def test_toml_keeps_its_comments_and_spacing() -> None:
    text = '# top\n[servers.main]\nport   = 30000  # the usual\nargs = [\n  "--tp", "8", # all\n]\n'
    after = edited("c.toml", text, servers__main__port="30001")
    assert after == text.replace("30000", "30001")
    assert edited("c.toml", text, servers__main__args__1="4") == text.replace('"8"', '"4"')
    with pytest.raises(EditError, match="no null"):
        edited("c.toml", text, servers__main__port="null")


def test_one_assignment_of_a_shell_file_changes() -> None:
    text = "# export NCCL_ALGO=old\nexport NCCL_ALGO=Ring # tuned\nNAME='a b'; OTHER=1\nX=$(date)\n"
    assert edited(".env", text, NCCL_ALGO="Tree") == text.replace("=Ring", "=Tree")
    assert edited("run.sh", text, NAME="it's") == text.replace("'a b'", "'it'\"'\"'s'")
    for key, why in (("X", "computed"), ("OTHER", "not set"), ("MISSING", "not set"), ("A-B", "no variable")):
        with pytest.raises(EditError, match=why):
            edited(".env", text, **{key: "1"})
    with pytest.raises(EditError, match="2 times"):
        edited(".env", "A=1\nexport A=2\n", A="3")


def test_the_kind_of_a_file_is_known_by_its_name() -> None:
    assert format_of("/root/.zshrc") == "shell"
    assert format_of("/etc/environment") == "shell"
    assert format_of("/m/generation_config.JSON") == "json"
    with pytest.raises(EditError, match=r"\.json, \.yaml"):
        format_of("/m/model.safetensors")


def test_the_diff_is_what_a_person_reads() -> None:
    before = json.dumps({"a": 1, "b": 2}, indent=1).encode()
    lines = diff("/m/c.json", before, apply("/m/c.json", before, [("a", "5")]))
    assert lines[:2] == ("--- /m/c.json", "+++ /m/c.json (new)")
    assert [line for line in lines[2:] if line[0] in "+-"] == ['- "a": 1,', '+ "a": 5,']
