from __future__ import annotations

import pytest

from specdash.monitor.evidence_json import EvidenceError, decode_evidence


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"nope", "seen.json: not JSON"),
        (b"[]", "seen.json: the file: expected `object`"),
        (b'{"gpuz":[]}', "seen.json: gpuz: not a key of the evidence; known are http, gpus"),
        (b'{"gpus":[{"index":0,"util":"x"}]}', r"seen.json: gpus\[0\].util: expected"),
        (b'{"gpus":[{}]}', r"seen.json: gpus\[0\]: object missing required field `index`"),
        (b'{"workers":[{"state":"Q"}]}', r"seen.json: workers\[0\].state: 'Q' is no process state"),
        (b'{"changed_s":{"cpu":-1}}', "seen.json: changed_s.cpu: an age is not negative"),
        (b'{"changed_s":{"cpu":"x"}}', "seen.json: changed_s.cpu: expected"),
        (b'{"http":{"/health":{"status":"up"}}}', "seen.json: http./health.status: expected"),
        (b'{"metrics":[{"running":1}]}', r"seen.json: metrics\[0\]: object missing required field `t`"),
    ],
)
def test_nonsense_is_refused_naming_file_and_key(raw: bytes, says: str) -> None:
    with pytest.raises(EvidenceError, match=says):
        decode_evidence(raw, "seen.json")


def test_unknown_keys_beside_known_ones_are_left_alone() -> None:
    seen = decode_evidence(b'{"compilers":2,"mood":"good","gpus":[{"index":0,"uuid":"x"}]}', "seen.json")
    assert seen.compilers == ("compiler", "compiler")
    assert seen.cards[0].util is None


def test_what_is_not_told_is_unknown_and_never_zero() -> None:
    seen = decode_evidence(b"{}", "seen.json")
    assert (seen.compilers, seen.running, seen.progress_age_s, seen.exit_code) == (None, None, None, None)


def test_counters_that_stood_still_have_stood_at_least_that_long() -> None:
    def age(*totals: int) -> float | None:
        samples = ",".join(f'{{"t":{10 * n},"generation_tokens_total":{v}}}' for n, v in enumerate(totals))
        return decode_evidence(f'{{"metrics":[{samples}]}}'.encode(), "seen.json").tokens_age_s

    assert age(5, 5, 5, 5) == 30
    assert age(5, 9, 9) == 10
    assert age(5, 5, 9) == 0
    assert age(5) is None


def test_prompt_tokens_are_tokens_too() -> None:
    raw = b'{"metrics":[{"t":0,"prompt_tokens_total":1,"generation_tokens_total":7,"running":2},\
{"t":5,"prompt_tokens_total":8193,"generation_tokens_total":7,"running":3,"waiting":4}]}'
    seen = decode_evidence(raw, "seen.json")
    assert (seen.tokens_age_s, seen.running, seen.waiting) == (0, 3, 4)


def test_with_one_gpu_for_each_worker_each_worker_knows_its_gpu() -> None:
    both = b'{"workers":[{"rank":"TP0"},{"rank":"TP1","state":"T"}],"gpus":[{"index":0,"util":100},\
{"index":1,"util":0,"power_w":121}]}'
    first, second = decode_evidence(both, "seen.json").ranks
    assert (first.util, second.util, second.power_w, second.state) == (100, 0, 121, "T")
    one = b'{"workers":[{"rank":"TP0"}],"gpus":[{"index":0,"util":100},{"index":1}]}'
    assert decode_evidence(one, "seen.json").ranks[0].util is None
