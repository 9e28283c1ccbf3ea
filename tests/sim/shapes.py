"""What a log line looks like without its numbers, so that words can be compared with recorded ones."""

from __future__ import annotations

import re
from pathlib import Path

PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: TP\d)?\] ")
_STEPS = (
    (re.compile(r"/[\w./-]*/[\w./-]+"), "<path>"),
    (re.compile(r"[ ▏▎▍▌▋▊▉█]{10}\|"), "<meter>|"),
    (re.compile(r"\d+:\d\d(:\d\d)?"), "0:0"),
    (re.compile(r"\d+(\.\d+)?"), "0"),
    (re.compile(r"\[0(, 0)*\]"), "[0]"),
    (re.compile(r"it/s|s/it"), "rate"),
    (re.compile(r" +0"), "0"),
)


def shape(text: str) -> str:
    """Numbers are 0, lists are [0], paths are <path>, a bar's blocks are <meter>."""
    for pattern, word in _STEPS:
        text = pattern.sub(word, text)
    return text.rstrip()


def recorded() -> set[str]:
    """Shapes of every line that SGLang 0.5.16 wrote in four recorded starts on real GPUs."""
    return set(Path(__file__).with_name("recorded_shapes.txt").read_text(encoding="utf-8").splitlines())
