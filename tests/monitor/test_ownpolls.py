"""Our own access lines are emptied, so that lines are counted as in the file; everybody else's stay."""

from __future__ import annotations

from specdash.monitor.ownpolls import blank

OURS = b'INFO:     127.0.0.1:40100 - "GET /health HTTP/1.1" 200 OK\n'
PREFIXED = b'(APIServer pid=9) INFO:     127.0.0.1:40100 - "GET /v1/loads?include=all HTTP/1.1" 200 OK\n'
THEIRS = b'INFO:     127.0.0.1:40101 - "GET /health HTTP/1.1" 200 OK\n'
WORK = b'INFO:     127.0.0.1:40100 - "POST /v1/completions HTTP/1.1" 200 OK\n'


def test_only_our_polls_are_emptied_and_counted() -> None:
    assert blank(OURS + THEIRS + PREFIXED + WORK, [40100]) == (b"\n" + THEIRS + b"\n" + WORK, 2)


def test_without_ports_of_ours_nothing_is_touched() -> None:
    assert blank(OURS, []) == (OURS, 0)


def test_a_line_that_has_not_ended_is_left_alone() -> None:
    assert blank(OURS.rstrip(b"\n"), [40100]) == (OURS.rstrip(b"\n"), 0)
