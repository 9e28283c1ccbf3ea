"""Files that are read, replaced and put back, as the tests ask for it."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from specdash.agent.acts import Acts
from specdash.agent.host import Host
from tests.agent.hands import Hands

OLD = b'{"max_position_embeddings": 4096}\n'
NEW = b'{"max_position_embeddings": 262144}\n'


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write(hands: Hands, path: Path, data: bytes, expect: bytes | None, **fields: Any) -> dict[str, Any]:
    return hands.do("write_file", **asked(path, data, expect), **fields)


def refused(hands: Hands, path: Path, data: bytes, expect: bytes | None, **fields: Any) -> str:
    return hands.refusal("write_file", **asked(path, data, expect), **fields)


def asked(path: Path, data: bytes, expect: bytes | None) -> dict[str, Any]:
    wanted = None if expect is None else sha(expect)
    return {"path": str(path), "data": base64.b64encode(data).decode(), "expect": wanted}


def acts_in(place: Path) -> Acts:
    """The verbs in this process, with the backups in a folder of the test."""

    class Made(Host):
        def state_folder(self) -> str:
            return str(place / "state")

        def run_folder(self) -> str:
            return str(place / "run")

    return Acts(Made(), {}, lambda _: None, lambda _: None)
