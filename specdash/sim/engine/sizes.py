"""How much memory everything takes on one card: what NVML shows and what the log says are one reckoning.

The model is the story's: a trillion parameters on eight 96 GB cards. As measured, its parameters are there
before the first shard is, so that memory tells nothing of a load; a capture takes nearly all of its memory
with its first shape. The KV pools are sized as SGLang sizes them: of what a card had before the weights,
``1 - mem_fraction_static`` stays free, and the weights leave the pools the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from specdash.sim.nvml import RESERVED_MIB, TOTAL_MIB

if TYPE_CHECKING:
    from specdash.sim.engine.acts import Setting
    from specdash.sim.scenarios import Part

USABLE_MIB = TOTAL_MIB - RESERVED_MIB
"""What CUDA calls a card's capacity: the driver's own share is not in it."""
CONTEXT_MIB, MET_MIB = 691, 1638
"""A rank with its context, and when it has met the others."""
TARGET_MIB, DRAFT_MIB = 68014, 1925
"""The weights of a rank."""
TARGET_LAYERS, DRAFT_LAYERS = 61, 1
GRAPHS_MIB: dict[Part, int] = {"prefill": 250, "verify": 410, "draft prefill": 205, "draft decode": 307}
"""With six of the 23 verify graphs, where the story's start hangs, a rank comes to its 76 GiB."""
LEFT_MIB = 764.06
"""What a card has left when a capture finds no memory."""

_LAYER_BYTES = 320
"""Of one token, in one layer of one rank: keys and values."""
_FIRST_SHAPE = 0.92
"""A capture's first shape makes the pool that the others share."""


class Pool(NamedTuple):
    """The KV caches of a rank."""

    tokens: int
    target_mib: int
    draft_mib: int


def gib(mib: float) -> str:
    """As the engine prints it."""
    return f"{mib / 1024:.2f}"


def weights(setting: Setting) -> int:
    """MiB of a rank's parameters, the draft's among them."""
    return TARGET_MIB + (DRAFT_MIB if setting.draft else 0)


def pool(setting: Setting) -> Pool:
    """What the weights leave for the KV caches; target and draft hold the same tokens."""
    before = USABLE_MIB - MET_MIB
    rest = before * setting.mem_fraction - weights(setting)
    layers = TARGET_LAYERS + (DRAFT_LAYERS if setting.draft else 0)
    tokens = int(rest * (1 << 20) / (_LAYER_BYTES * layers))
    return Pool(tokens, round(rest * TARGET_LAYERS / layers), round(rest * (layers - TARGET_LAYERS) / layers))


def captured(part: Part, done: int, shapes: int) -> int:
    """MiB that a capture has taken after so many of its shapes."""
    if not done:
        return 0
    rest = (1 - _FIRST_SHAPE) * (done - 1) / max(1, shapes - 1)
    return round(GRAPHS_MIB[part] * (_FIRST_SHAPE + rest))


def graphs(setting: Setting) -> int:
    """MiB of all captures of a start."""
    parts = [part for part in GRAPHS_MIB if setting.draft or not part.startswith("draft")]
    return sum(GRAPHS_MIB[part] for part in parts if part != "draft decode" or setting.steps > 1)
