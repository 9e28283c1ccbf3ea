"""A workload as the phases of a run need it: where to, and what. Of the load generator."""

import importlib
import json
import os
import random

from specdash.agent.loadhttp import request
from specdash.agent.loadprompts import BuiltIn, FromFile, as_text, nonce_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Plan(object):
    """A workload as the phases need it; values were checked where it was made."""

    def __init__(self, workload: "Json") -> None:
        self.chat = workload.get("api", "chat") == "chat"
        self.seed = int(workload.get("seed", 0))
        self.rate = workload.get("rate")
        self.poisson = workload.get("arrival", "poisson") == "poisson"
        self.streams = workload.get("concurrency") or (None if self.rate else 1)
        self.requests = int(workload.get("requests", 32))
        given = workload.get("warmup")
        self.warmups = min(256, 2 * (self.streams or 1)) if given is None else int(given)
        self.timeout = float(workload.get("timeout", 600.0))
        self.duration = workload.get("duration")
        self.output = int(workload.get("output", 128))
        self.model = workload.get("model")
        self.nonce = str(workload.get("nonce") or nonce_of(random.Random(os.urandom(16))))
        self.loads, self.json = _loads()
        scheme, _, rest = str(workload["url"]).partition("://")
        place, _, path = rest.partition("/")
        host, _, port = place.rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)
        self.secure = scheme == "https"
        self.verify = bool(workload.get("tls_verify", True))
        self.authority = workload.get("tls_ca")
        self.prefix = "/" + path if path else ""
        self.headers: "Json" = {"Host": place, "Accept": "text/event-stream, application/json"}
        self.headers.update(workload.get("headers") or {})
        key = os.environ.get(workload.get("key_env") or "", "").strip()
        if key:
            self.headers["Authorization"] = "Bearer " + key
        source = workload.get("prompts", "builtin")
        self.prompts: "Any" = (
            BuiltIn(self.seed, int(workload.get("input", 128)))
            if source == "builtin"
            else FromFile(source, self.seed)
        )
        self._fixed = self._fixed_fields(workload)

    def _fixed_fields(self, workload: "Json") -> "Json":
        usage: "Json" = {"include_usage": True}
        if workload.get("chunk_usage"):
            usage["continuous_usage_stats"] = True
        fields: "Json" = {"stream": True, "stream_options": usage}
        if workload.get("temperature", 0.0) is not None:
            fields["temperature"] = workload.get("temperature", 0.0)
        if workload.get("ignore_eos", True):
            fields["ignore_eos"] = True
        fields.update(workload.get("extra") or {})
        return fields

    def body(self, n: int, phase: str) -> bytes:
        """The bytes of request ``n``."""
        asked, output = self.prompts.message(n, self.nonce, phase)
        fields: "Json" = {"model": self.model}
        if self.chat:
            fields["messages"] = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        else:
            fields["prompt"] = as_text(asked)
        fields["max_tokens"] = output or self.output
        fields.update(self._fixed)
        path = "/v1/chat/completions" if self.chat else "/v1/completions"
        return request("POST", self.prefix + path, self.headers, json.dumps(fields).encode("utf-8"))


def _loads() -> "tuple[Any, str]":
    """The quickest reader of JSON that can be imported here."""
    try:
        return importlib.import_module("orjson").loads, "orjson"
    except ImportError:
        return json.loads, "json"
