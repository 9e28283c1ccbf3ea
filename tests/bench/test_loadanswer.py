"""What the chunks of a stream say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specdash.agent.loadanswer import Answer, gaps
from specdash.bench.spreads import SPREAD_BASE


def delta(finish: str | None = None, usage: Any = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}
    return json.dumps({"id": "x", "choices": [choice], "usage": usage}).encode()


def answered(*chunks: bytes, chat: bool = True, step: float = 0.01) -> Answer:
    answer = Answer(chat, json.loads)
    for number, chunk in enumerate(chunks):
        answer.take(chunk, number * step)
    return answer


def test_a_role_an_empty_text_and_usage_are_no_token() -> None:
    answer = answered(
        delta(role="assistant", content=""),
        delta(content=""),
        delta(content="a"),
        delta(content="b", finish="length"),
        b'{"choices":[],"usage":{"completion_tokens":7,"prompt_tokens":3}}',
        b"[DONE]",
    )
    assert answer.times == pytest.approx([0.02, 0.03])
    assert answer.usage == {"completion_tokens": 7, "prompt_tokens": 3}
    assert (answer.done, answer.finish, answer.error) == (True, "length", None)


@pytest.mark.parametrize("chat", [True, False])
def test_tokens_that_show_nothing_are_an_answer_with_the_times_of_its_chunks(chat: bool) -> None:
    blank = delta(content="") if chat else b'{"choices":[{"index":0,"text":"","finish_reason":null}]}'
    usage = b'{"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":3}}'
    first = [delta(role="assistant", content="")] if chat else []
    answer = answered(*first, blank, blank, delta(finish="length"), usage, b"[DONE]", chat=chat)
    answer.settle()
    assert answer.times == pytest.approx([0.01, 0.02] if chat else [0.0, 0.01])
    assert answer.first_output == answer.times[0]


def test_without_a_token_in_its_usage_a_blank_chunk_is_no_answer() -> None:
    answer = answered(delta(content=""), delta(finish="stop"), b"[DONE]")
    answer.settle()
    assert answer.times == []


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_token_but_not_output(name: str) -> None:
    answer = answered(delta(**{name: "hm"}), delta(**{name: "so"}), delta(content="yes"))
    assert answer.times == pytest.approx([0.0, 0.01, 0.02])
    assert answer.first_output == pytest.approx(0.02)


def test_a_tool_call_is_a_token() -> None:
    call = [{"index": 0, "function": {"arguments": "{"}}]
    assert len(answered(delta(tool_calls=call), delta(tool_calls=call, finish="tool_calls")).times) == 2


def test_the_completions_api_has_its_text_elsewhere() -> None:
    chunk = b'{"choices":[{"index":0,"text":" a","finish_reason":null}]}'
    assert len(answered(chunk, chunk, chat=False).times) == 2


def test_chunks_that_differ_in_their_text_alone_are_known_without_reading_them() -> None:
    read: list[bytes] = []

    def loads(data: bytes) -> Any:
        read.append(data)
        return json.loads(data)

    plain = Answer(True, json.loads)
    quick = Answer(True, loads)
    texts = ["a", "b", " longer", 'a "quoted" one', "back\\slash", "Grüße", "", "z", "\n"]
    for at, text in enumerate(texts * 3):
        chunk = json.dumps(
            {"choices": [{"delta": {"content": text}, "finish_reason": None}]}, ensure_ascii=False
        )
        quick.take(chunk.encode(), float(at))
        plain._least = 1 << 60
        plain.take(chunk.encode(), float(at))
    assert (quick.times, quick.crc) == (plain.times, plain.crc)
    assert len(read) < len(texts) * 2


@pytest.mark.parametrize(
    "second",
    [
        b'{"choices":[{"delta":{"content":"b"},"finish_reason":"length"}]}',
        b'{"choices":[{"delta":{"content":""},"finish_reason":null}]}',
        b'{"choices":[{"delta":{"content":"b","reasoning":"x"},"finish_reason":null}]}',
        b'{"error":{"message":"content"},"choices":[{"delta":{"content":"b"},"finish_reason":null}]}',
        b'{"choices":[{"delta":{"content":"b\\",\\"x\\":\\""},"finish_reason":null}]}',
    ],
)
def test_a_chunk_that_only_looks_like_the_last_one_is_read(second: bytes) -> None:
    first = b'{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}'
    quick, slow = answered(first, second), Answer(True, json.loads)
    for at, chunk in enumerate((first, second)):
        slow._least = 1 << 60
        slow.take(chunk, at * 0.01)
    for name in ("times", "finish", "error", "crc", "first_output"):
        assert getattr(quick, name) == getattr(slow, name), name


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        (b'{"error":{"message":"CUDA out of memory","code":500}}', "error_chunk"),
        (b'{"object":"error","message":"gone","code":400}', "error_chunk"),
        (b'{"error":"plain words"}', "error_chunk"),
        (b"{not json", "protocol"),
        (b"[1, 2]", "protocol"),
        (b'{"choices":[17]}', "protocol"),
        (delta(content="x", finish="abort"), "aborted"),
        (delta(content="x", finish="NaN happened"), "aborted"),
    ],
)
def test_an_error_inside_a_good_stream_is_an_error(chunk: bytes, kind: str) -> None:
    assert answered(delta(content="a"), chunk, delta(content="b"), b"[DONE]").error == kind


def test_usage_in_every_chunk_tells_the_tokens_of_each() -> None:
    counts = (3, 6, 7)
    answer = answered(
        *[delta(content="x", usage={"completion_tokens": count}) for count in counts], step=0.03
    )
    told = gaps(answer)
    assert (answer.first_tokens, answer.shares) == (3, [3, 3, 1])
    assert told is not None
    per_token = {round(SPREAD_BASE**bucket / 1000): count for bucket, count in told["per_token"]}
    assert per_token == {10: 3, 30: 1}
    assert [[round(SPREAD_BASE**bucket / 1000), count] for bucket, count in told["buckets"]] == [[30, 2]]


def test_one_chunk_has_no_gap() -> None:
    assert gaps(answered(delta(content="all at once"))) is None
