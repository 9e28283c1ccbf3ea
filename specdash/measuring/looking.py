"""What a server behind a URL says of itself before it is measured: a few harmless GETs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec

from specdash.bench.plan import Workload
from specdash.measuring.course import slug
from specdash.monitor.metrics import parse
from specdash.sanitise import clean_line
from specdash.secrecy import redact

LIMIT_S: Final = 5.0
MOST: Final = 4 << 20
TENSORRT_LLM: Final = "tensorrt_llm"
"""Who owns the models that ``trtllm-serve`` lists."""
_TOLD: Final = (
    "model_path tp_size pp_size dp_size quantization dtype kv_cache_dtype attention_backend context_length"
    " speculative_algorithm speculative_draft_model_path speculative_num_steps speculative_eagle_topk"
    " speculative_num_draft_tokens cuda_graph_max_bs disable_cuda_graph mem_fraction_static"
).split()
"""What of SGLang's resolved arguments goes into a fingerprint."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned. Empty: it does not tell."""

    fingerprint: Mapping[str, str] = {}
    launch: str = ""
    model: str | None = None
    """The first that it lists."""
    speculates: bool = False
    variant: str | None = None
    """A name for what is special about it, where its arguments tell."""
    running: int | None = None
    """Requests that it has now, at work and waiting."""
    counters: bool = True
    """Its ``/metrics`` may be read; reading TensorRT-LLM's takes them away from others."""
    error: str | None = None
    """Nobody answers there at all."""


async def look(load: Workload) -> Looked:
    """Ask for version, arguments and metrics. What is not there is left out; never raises for a network."""
    headers = dict(load.headers)
    key = os.environ.get(load.key_env or "", "").strip()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    verify: Any = load.tls_ca if load.tls_ca and load.tls_verify else load.tls_verify
    alone = httpx.Limits(max_keepalive_connections=0)  # a server may close a kept one under our next question
    try:
        async with httpx.AsyncClient(
            headers=headers, verify=verify, timeout=LIMIT_S, trust_env=False, limits=alone
        ) as client:
            return await _ask(client, load.url)
    except (httpx.HTTPError, OSError, ValueError) as error:
        return Looked(error=clean_line(str(error)) or type(error).__name__)


async def _ask(client: httpx.AsyncClient, url: str) -> Looked:
    listed = (await _json(client, f"{url}/v1/models")).get("data")
    models = listed if isinstance(listed, list) else []
    counters = not any(isinstance(one, dict) and one.get("owned_by") == TENSORRT_LLM for one in models)
    names = [clean_line(str(one.get("id") or ""))[:200] for one in models if isinstance(one, dict)]
    metrics = await _text(client, f"{url}/metrics") if counters else ""
    info = await _json(client, f"{url}/server_info") or await _json(client, f"{url}/get_server_info")
    version = await _json(client, f"{url}/version")
    facts: dict[str, str] = {}
    engine = (
        "sglang"
        if "internal_states" in info or "sglang:" in metrics
        else "vllm"
        if "vllm:" in metrics
        else ""
    )
    facts["engine"] = engine
    facts["version"] = str(info.get("version") or version.get("version") or "")
    facts.update((f"flag {name}", str(info[name])) for name in _TOLD if info.get(name) not in (None, ""))
    method, steps = info.get("speculative_algorithm"), info.get("speculative_num_steps")
    variant = None
    if method:
        facts["speculation"] = f"{method} {steps} steps" if steps else str(method)
        variant = slug(facts["speculation"])
    lines = [line.split() for line in metrics.splitlines() if line.startswith("process_start_time_seconds ")]
    born = lines[0][1] if lines and len(lines[0]) > 1 else ""
    return Looked(
        fingerprint={field: redact(clean_line(value))[:200] for field, value in facts.items() if value},
        model=next((name for name in names if name), None),
        launch=f"{url} since {clean_line(born)[:40]}" if born else "",
        speculates=bool(method) or "spec_decode_num_drafts" in metrics,
        variant=variant,
        counters=counters,
        running=_at_once(metrics),
    )


def _at_once(metrics: str) -> int | None:
    found = parse(metrics, 0.0)
    return None if found.running is None else found.running + (found.waiting or 0)


async def _text(client: httpx.AsyncClient, url: str) -> str:
    async with client.stream("GET", url) as answer:
        if answer.status_code != 200:
            return ""
        data = b""
        async for piece in answer.aiter_bytes():
            data += piece
            if len(data) > MOST:
                return ""
    return data.decode("utf-8", "replace")


async def _json(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode((await _text(client, url)).encode())
    except (msgspec.DecodeError, httpx.HTTPError):
        return {}
    return value if isinstance(value, dict) else {}
