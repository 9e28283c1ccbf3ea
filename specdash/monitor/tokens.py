"""Asking a server for one token: whom, where, and under which name."""

from __future__ import annotations

import json
from typing import Any, Final

from specdash.monitor.polling import reachable_host
from specdash.monitor.state import Server

PATH: Final = "/v1/completions"
LIMIT_S: Final = 30.0
"""A server that serves answers within a second; one that waits longer behind others is worth knowing of."""


def listens(server: Server) -> bool:
    """Somebody accepts connections on its port: there is somebody to ask."""
    port = next((lamp for lamp in server.lamps if lamp.name == "port"), None)
    return server.gone_at is None and server.port is not None and port is not None and port.says == "yes"


def served_model(server: Server) -> str:
    """The name under which it serves: what the model list says, before what the command line says."""
    for lamp in server.lamps:
        if lamp.name == "models" and lamp.says == "yes":
            return lamp.value.split(", ")[0]
    return server.model or "default"


def token_request(server: Server, key_env: str | None = None, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """The agent's ``token`` request. ``key_env``: the variable on the host that holds the API key."""
    body = {"model": served_model(server), "prompt": "Say one word:", "max_tokens": 1, "temperature": 0}
    return {
        "r": "token",
        "server": server.key,
        "host": reachable_host(server.bind),
        "port": server.port,
        "path": PATH,
        "body": json.dumps(body),
        "limit": limit_s,
        "key_env": key_env,
    }
