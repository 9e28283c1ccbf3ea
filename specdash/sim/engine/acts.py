"""The acts of a start: what is written, shown and done, each at its second."""

from __future__ import annotations

from typing import Literal, NamedTuple

Deed = Literal["spawn", "title", "compile", "compiled", "open", "die"]


class Say(NamedTuple):
    """A record of the log. ``rank`` None: the main process."""

    at: float
    text: str
    rank: int | None = None
    bare: bool = False
    """Without time stamp: a library's own line."""


class Bar(NamedTuple):
    """An update of the open progress bar: CR and text. ``text`` None closes it with LF."""

    at: float
    text: str | None


class Show(NamedTuple):
    """From now on the ranks and their GPUs look like this."""

    at: float
    moods: tuple[str, ...]
    mib: int
    """GPU memory of each rank."""


class Do(NamedTuple):
    """Something happens to processes or ports."""

    at: float
    what: Deed


Act = Say | Bar | Show | Do


class Setting(NamedTuple):
    """What the command line and the model's files say."""

    model: str
    draft: str | None
    port: int
    tp: int
    steps: int
    draft_tokens: int
    served: str
    pid: int
    target_context: int = 262144
    draft_context: int = 262144
    override: bool = False
    """SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1."""
    mem_fraction: float = 0.79
    """Share of a card's memory for weights and KV caches; the default is what SGLang would have chosen."""


PREFILL_SHAPES = (
    *(4, 8, 12, 16, 20, 24, 28, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256),
    *(288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 832, 896, 960, 1024),
    *(1280, 1536, 1792, 2048, 2304, 2560, 2816, 3072, 3328, 3584, 3840, 4096),
    *(4608, 5120, 5632, 6144, 6656, 7168, 7680, 8192),
)
DECODE_SHAPES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 40, 44, 48)
