"""A host with two models and hands that offer plans for it, and what happens to its server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from specdash.operations.offers import Operations
from specdash.operations.sightings import Sightings
from tests.operations.fakehost import FakeHost

DRAFT = "/models/draft/config.json"
FLAGS = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft")
Offering = Callable[..., Operations]


def stocked() -> FakeHost:
    """A host on which a target and a draft with a shorter context lie."""
    host = FakeHost()
    for name, context in (("target", 262144), ("draft", 131072)):
        config = {
            "architectures": ["LlamaForCausalLMEagle3"],
            "hidden_size": 8,
            "vocab_size": 9,
            "max_position_embeddings": context,
        }
        host.files[f"/models/{name}/config.json"] = json.dumps(config, indent=2).encode()
        host.folders[f"/models/{name}"] = {"config.json": 10, "model.safetensors": 1 << 30}
    return host


def add_flags(host: FakeHost, *flags: str) -> None:
    """More words on the command line of the server that runs."""
    host.files["/proc/100/cmdline"] += "\0".join(flags).encode() + b"\0"


def bury(host: FakeHost) -> None:
    for pid in (100, 101, 102, 103):
        host.procs.pop(pid, None)


async def seen(sightings: Sightings) -> None:
    """Let it look, and wait until it has."""
    sightings.attend()
    for _ in range(50):
        await asyncio.sleep(0)
