"""How busy a rank and its GPU look in each phase. Watts are this card's; the pattern is measured.

Sources of the pattern: SGLang 0.5.16 with two ranks on real GPUs. In a capture hang the waiting ranks spin
(100 % utilisation, one core, little power) and the guilty one is at 0 %; while a kernel is compiled all
cards are idle; memory shows neither the progress of a load nor of a capture.
"""

from __future__ import annotations

from typing import NamedTuple


class Mood(NamedTuple):
    """What the card and the rank's process show. Pairs are (middle, spread)."""

    util: tuple[int, int]
    watts: tuple[int, int]
    temp: int
    mhz: int
    cpu: float
    """Share of one core that the rank burns."""
    state: str = "S"
    """State of the rank's main thread as the kernel would show it."""
    reads: bool = False
    """It reads its weights from storage."""


MOODS: dict[str, Mood] = {
    "importing": Mood((0, 0), (34, 2), 31, 180, 0.95, "R"),
    "meeting": Mood((0, 0), (72, 4), 33, 2280, 0.6),
    "loading": Mood((1, 1), (88, 5), 37, 2280, 0.72, "R", reads=True),
    "arranging": Mood((12, 11), (124, 16), 40, 2377, 0.9, "R"),
    "compiling": Mood((0, 0), (92, 3), 38, 2280, 0.02),
    "capturing": Mood((58, 30), (214, 55), 47, 2377, 0.98, "R"),
    "waiting": Mood((100, 0), (138, 9), 46, 2407, 1.0, "R"),
    "guilty": Mood((0, 0), (96, 2), 40, 2280, 0.0),
    "ready": Mood((0, 0), (91, 3), 39, 2280, 0.35),
    "decoding": Mood((94, 4), (322, 24), 58, 2377, 0.99, "R"),
}
