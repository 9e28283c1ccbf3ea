"""What is started on the fake host, and how its start goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from specdash.monitor.documents import Progress
from specdash.monitor.serverparts import RailItem
from specdash.operations.launch import Wish
from specdash.operations.work import Launch
from tests.operations.fakehost import FakeHost, Proc, server

ARGV = (
    "python3",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "/models/target",
    "--tp",
    "2",
    "--port",
    "30000",
)
CONFIG = {"architectures": ["X"], "max_position_embeddings": 262144}
WISH = Wish(launch=Launch(name="main", engine="sglang", argv=ARGV, log="/var/log/s.log"))


def begin(**ending: Any) -> Callable[[FakeHost, dict[str, Any]], int]:
    """What a start does: load for 60 s, then end up as ``ending`` says (ready)."""

    def start(host: FakeHost, request: dict[str, Any]) -> int:
        host.add(Proc(500, 5000, " ".join(request["argv"]), family="new"))
        rail = RailItem(
            phase="weights", mark="active", title="weights", progress=Progress(done=3, total=64, unit="s")
        )
        found = server(500, state="loading", phase="weights", rail=(rail,))
        host.servers.append(found)
        began = host.clock.now

        def live() -> None:
            if host.clock.now - began > 60:
                host.servers[-1] = msgspec.structs.replace(found, rail=(), **{"state": "ready", **ending})

        host.clock.on_sleep.append(live)
        return 500

    return start


def startable() -> FakeHost:
    """A host that has the model that is to be served, where a start goes well."""
    host = FakeHost()
    host.files["/models/target/config.json"] = json.dumps(CONFIG).encode()
    host.folders["/models/target"] = {"config.json": 10, "model.safetensors": 1 << 30}
    host.on_launch = begin()
    return host
