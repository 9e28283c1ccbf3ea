"""enter shows a record whole: what belongs together by the engine's language, and nothing beside it."""

from __future__ import annotations

import pytest

from specdash.intake.rules import grammar_of
from specdash.logs.buffer import LogBuffer
from specdash.logs.numbering import Numbers
from specdash.tui.paint import text_of
from specdash.tui.widgets.logrecord import record_of, record_rows, record_title

SGLANG = b"""\
[2026-11-29 12:33:55 TP0] Init torch distributed begin.
[2026-11-29 12:34:01 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/scheduler.py", line 3219, in run_scheduler_process
    scheduler = Scheduler(server_args)

ValueError: too small

During handling of the above exception, another exception occurred:

RuntimeError: gone
[2026-11-29 12:34:02] Received sigquit from a child process, TP3 failed.
INFO:     Shutting down
W1129 14:29:53.797000 20057 torch/_library/triton.py:53] Triton not available
Loading shards:  50%|##  | 1/2 [00:01<00:01]
[2026-11-29 12:34:03] server_args=ServerArgs(
    model_path='/models/target',
)
"""
VLLM = b"""\
(EngineCore pid=5) INFO 11-29 10:00:02 [core.py:1] going
(EngineCore pid=5) ERROR 11-29 10:00:02 [core.py:1] EngineCore failed
(EngineCore pid=5) ERROR 11-29 10:00:02 [core.py:1] Traceback (most recent call last):
(EngineCore pid=5) ERROR 11-29 10:00:02 [core.py:1]   File "/x.py", line 1
(EngineCore pid=5) ERROR 11-29 10:00:02 [core.py:1] ValueError: x
(EngineCore pid=5) ERROR 11-29 10:00:09 [core.py:1] another one
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File "/x.py", line 1, in main
(APIServer pid=1) RuntimeError: engine died
INFO:     Waiting for application shutdown.
"""


def buffer_of(log: bytes) -> LogBuffer:
    buffer = LogBuffer()
    buffer.append(log)
    return buffer


@pytest.mark.parametrize(
    ("engine", "log", "records"),
    [
        ("sglang", SGLANG, [(1, 1), (2, 10), (11, 11), (12, 12), (13, 13), (14, 14), (15, 16)]),
        ("vllm", VLLM, [(1, 1), (2, 5), (6, 6), (7, 9), (10, 10)]),
    ],
)
def test_each_line_opens_the_record_that_it_belongs_to(
    engine: str, log: bytes, records: list[tuple[int, int]]
) -> None:
    buffer = buffer_of(log)
    grammar = grammar_of(engine)
    for first, last in records:
        for line in range(first, last + 1):
            assert record_of(buffer, line, grammar) == (first, last), line


def test_a_record_ends_where_the_log_was_rotated() -> None:
    buffer = buffer_of(b"[2026-11-29 12:34:01 TP3] Traceback (most recent call last):\n  File x\n")
    buffer.append(b"  File y\n", break_="rotated")
    grammar = grammar_of("sglang")
    assert record_of(buffer, 2, grammar) == (1, 2)
    assert record_of(buffer, 3, grammar) == (3, 3)


def test_without_a_language_a_line_is_a_record() -> None:
    assert record_of(buffer_of(SGLANG), 4, None) == (4, 4)


def test_a_giant_line_is_read_to_its_end_in_the_width_there_is() -> None:
    buffer = buffer_of(b"args " + "漢".encode() * 500 + b" END\n")
    rows = [text_of(row) for row in record_rows([buffer.text(1)], 79)]
    assert len(rows) == 13
    assert rows[-1].endswith(" END")
    assert "".join(rows) == buffer.text(1)
    assert text_of(record_title(Numbers(1, 1, 1, True))) == "line 1 of 1, as it was printed"
    many = text_of(record_title(Numbers(2, 10, 1200, True)))
    assert many == "lines 2 to 10 of 1,200: one record, as printed"
    newest = text_of(record_title(Numbers(8, 8, 9, True), only_polls_after=True))
    assert newest == "line 8 of 9, as it was printed; after it only hidden polls"
    before = text_of(record_title(Numbers(2, 2, 9, False)))
    assert before == "line 2 of 9 of the file before, as it was printed"
