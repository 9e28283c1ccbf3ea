"""What the server answers over HTTP: bodies only, as SGLang 0.5.16 was seen to write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from specdash.sim.engine import sizes
from specdash.sim.engine.histogram import Histogram

if TYPE_CHECKING:
    from specdash.sim.engine.acts import Setting
    from specdash.sim.engine.batch import Batch

VERSION = "0.5.16"
_WORDS = (
    " the rank that waits spins, and one that sleeps is guilty; a bar that stands still says nothing"
    " until its compilers have gone home, so look at the age of progress and not at the last line"
).split(" ")[1:]


def word(n: int) -> str:
    """The n-th token of every completion: a blank and a word."""
    return " " + _WORDS[n % len(_WORDS)]


def models(setting: Setting, now: float) -> Any:
    """``/v1/models``."""
    model = {"id": setting.served, "object": "model", "created": int(now), "owned_by": "sglang"}
    more = {"root": setting.served, "parent": None, "max_model_len": setting.target_context}
    return {"object": "list", "data": [{**model, **more}]}


def model_info(setting: Setting) -> Any:
    """``/model_info``."""
    return {
        "model_path": setting.model,
        "tokenizer_path": setting.model,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
    }


def server_info(setting: Setting, batch: Batch) -> Any:
    """``/server_info``, the part of it that a monitor may want."""
    return {
        "model_path": setting.model,
        "served_model_name": setting.served,
        "tp_size": setting.tp,
        "port": setting.port,
        "speculative_algorithm": "EAGLE3" if setting.draft else None,
        "speculative_draft_model_path": setting.draft,
        "speculative_num_steps": setting.steps if setting.draft else None,
        "max_total_num_tokens": batch.kv_tokens,
        "internal_states": [{"last_gen_throughput": batch.throughput, **_spoken(setting, batch)}],
        "version": VERSION,
    }


def _spoken(setting: Setting, batch: Batch) -> dict[str, float]:
    return {"avg_spec_accept_length": batch.accept_length} if setting.draft else {}


def loads(setting: Setting, batch: Batch, now: float, snapshot: float) -> Any:
    """``/v1/loads?include=all``: read from shared memory, so it answers in a hang too, with an old stamp."""
    from time import gmtime, strftime

    running, kv = len(batch.running), sizes.pool(setting)
    load: dict[str, Any] = {
        "timestamp": snapshot,
        "dp_rank": 0,
        "num_running_reqs": running,
        "num_waiting_reqs": batch.queued,
        "num_waiting_uncached_tokens": 0,
        "num_used_tokens": batch.tokens_held,
        "num_total_tokens": batch.tokens_held,
        "max_total_num_tokens": batch.kv_tokens,
        "max_running_requests": 48,
        "token_usage": round(batch.kv_share, 4),
        "gen_throughput": round(batch.throughput, 2) if running else 0.0,
        "cache_hit_rate": 0.0,
        "utilization": 0.0,
        "memory": {
            "weight_gb": round(sizes.weights(setting) / 1024, 3),
            "kv_cache_gb": round((kv.target_mib + kv.draft_mib) / 1024, 3),
            "graph_gb": round(sizes.graphs(setting) / 1024, 3),
            "token_capacity": batch.kv_tokens,
        },
        "disaggregation": {"mode": "null"},
        "queues": {"waiting": batch.queued, "grammar": 0, "paused": 0, "retracted": 0},
    }
    if setting.draft:
        rate = (batch.accept_length - 1) / setting.steps
        load["speculative"] = {"accept_length": batch.accept_length, "accept_rate": round(rate, 4)}
    stamp = strftime("%Y-%m-%dT%H:%M:%S", gmtime(now)) + f".{int(now % 1 * 1e6):06d}+00:00"
    return {"timestamp": stamp, "version": VERSION, "loads": [load]}


def metrics(setting: Setting, batch: Batch) -> str:
    """``/metrics``: the samples that a monitor reads, with their help lines."""
    rank = f'engine_type="unified",model_name="{setting.served}",moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    main = f'engine_type="unified",model_name="{setting.served}"'
    running = len(batch.running)
    gauges = {
        "max_total_num_tokens": ("Maximum total number of tokens in the KV cache pool.", batch.kv_tokens),
        "num_running_reqs": ("The number of running requests.", running),
        "num_queue_reqs": ("The number of requests in the waiting queue.", batch.queued),
        "gen_throughput": ("The generation throughput (token/s).", batch.throughput if running else 0.0),
        "token_usage": ("The token usage.", batch.kv_share),
        "num_used_tokens": ("The number of used tokens.", batch.tokens_held),
    }
    if setting.draft:
        about = "Mean acceptance length of speculative decoding (accepted drafts + bonus token per forward)."
        gauges["spec_accept_length"] = (about, batch.accept_length)
    counters = {
        "prompt_tokens_total": ("Number of prefill tokens processed.", batch.prompted),
        "generation_tokens_total": ("Number of generation tokens processed.", batch.generated),
        "num_requests_total": ("Number of requests processed.", batch.finished),
    }
    lines = []
    for name, (about, value) in gauges.items():
        lines += [f"# HELP sglang:{name} {about}", f"# TYPE sglang:{name} gauge"]
        lines.append(f"sglang:{name}{{{rank}}} {float(value)}")
    for name, (about, value) in counters.items():
        lines += [f"# HELP sglang:{name} {about}", f"# TYPE sglang:{name} counter"]
        lines.append(f"sglang:{name}{{{main}}} {float(value)}")
    lines += _histogram("time_to_first_token", "time to first token", main, batch.ttft)
    lines += _histogram("inter_token_latency", "inter-token latency", main, batch.itl)
    return "\n".join(lines) + "\n"


def _histogram(name: str, about: str, labels: str, values: Histogram) -> list[str]:
    name = f"sglang:{name}_seconds"
    lines = [f"# HELP {name} Histogram of {about} in seconds.", f"# TYPE {name} histogram"]
    for bound, many in zip(values.bounds, values.within, strict=True):
        lines.append(f'{name}_bucket{{{labels},le="{float(bound)}"}} {float(many)}')
    lines.append(f'{name}_bucket{{{labels},le="+Inf"}} {float(values.count)}')
    return [
        *lines,
        f"{name}_sum{{{labels}}} {values.total}",
        f"{name}_count{{{labels}}} {float(values.count)}",
    ]


class Wish:
    """What a client asks for: kind, size and manner of a completion. Raises ValueError for a bad body."""

    def __init__(self, path: str, body: bytes) -> None:
        asked = json.loads(body or b"{}")
        if not isinstance(asked, dict):
            raise ValueError("body is no object")
        self.chat = path.endswith("/chat/completions")
        self.native = path == "/generate"
        params = asked.get("sampling_params") or {} if self.native else asked
        most = params.get("max_new_tokens") or params.get("max_completion_tokens") or params.get("max_tokens")
        self.tokens = max(1, int(most or (256 if self.chat else 16 if not self.native else 128)))
        self.stream = bool(asked.get("stream"))
        options = asked.get("stream_options") or {}
        self.usage = bool(options.get("include_usage"))
        self.prompt = max(1, _size(asked))


def _size(asked: Mapping[str, Any]) -> int:
    """Tokens of the prompt: ids are counted, text is taken at four characters each."""
    prompt = asked.get("prompt", asked.get("text", asked.get("messages", asked.get("input_ids", ""))))
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return len(prompt)
    return (len(prompt) if isinstance(prompt, str) else len(json.dumps(prompt))) // 4 + 1


class Reply:
    """One completion as JSON, whole or in chunks."""

    def __init__(self, wish: Wish, served: str, identity: str, created: float) -> None:
        self.wish = wish
        self.head = {"id": identity, "object": "text_completion", "created": int(created), "model": served}
        if wish.chat:
            self.head["object"] = "chat.completion.chunk" if wish.stream else "chat.completion"

    def opening(self) -> Any | None:
        """The first chunk of a chat stream: a role without content."""
        return self._chunk({"role": "assistant", "content": ""}, None) if self.wish.chat else None

    def chunk(self, first: int, count: int, *, last: bool) -> list[Any]:
        """Tokens ``first`` to ``first + count``; the last ones say why it ended."""
        text = "".join(word(n) for n in range(first, first + count))
        if not self.wish.chat:
            return [self._chunk(text, "length" if last else None)]
        chunks = [self._chunk({"content": text}, None)]
        return [*chunks, self._chunk({}, "length")] if last else chunks

    def closing(self, made: int) -> Any:
        """The chunk that only counts."""
        head = {**self.head, "choices": []}
        return {**head, "usage": self.usage(made)}

    def whole(self, made: int) -> Any:
        """A completion that is not streamed."""
        text = "".join(word(n) for n in range(made))
        if self.wish.native:
            info = {"id": self.head["id"], "finish_reason": {"type": "length", "length": made}}
            counts = {"prompt_tokens": self.wish.prompt, "completion_tokens": made, "cached_tokens": 0}
            return {"text": text, "output_ids": list(range(made)), "meta_info": {**info, **counts}}
        choice: dict[str, Any] = {
            "index": 0,
            "logprobs": None,
            "finish_reason": "length",
            "matched_stop": None,
        }
        if self.wish.chat:
            choice["message"] = {
                "role": "assistant",
                "content": text,
                "reasoning_content": None,
                "tool_calls": None,
            }
        else:
            choice["text"] = text
        return {**self.head, "choices": [choice], "usage": self.usage(made)}

    def usage(self, made: int) -> dict[str, Any]:
        """The server's own count."""
        prompt = self.wish.prompt
        counts = {"prompt_tokens": prompt, "total_tokens": prompt + made, "completion_tokens": made}
        return {**counts, "prompt_tokens_details": None, "reasoning_tokens": 0}

    def _chunk(self, content: Any, reason: str | None) -> Any:
        choice: dict[str, Any] = {"index": 0}
        if self.wish.chat:
            choice["delta"] = {"reasoning_content": None, **content}
        else:
            choice["text"] = content
        choice.update({"logprobs": None, "finish_reason": reason, "matched_stop": None})
        head = {**self.head, "choices": [choice]}
        return head if self.wish.chat else {**head, "usage": None}
