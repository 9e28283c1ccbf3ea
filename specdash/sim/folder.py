"""The simulated host's files: one private folder that is gone when the simulation is."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdash.sim.adapter import CLOCK_BOOTTIME
from specdash.sim.nvml import CARDS
from specdash.sim.options import Options
from specdash.sim.scenarios import SCENARIOS, Scenario

HOSTNAME = "gpubox"
TARGET_CONTEXT = 262144
BENCHMARK_BYTES = 5518
WEIGHT_BYTES = 584_115_552_256
"""The target's: 544 GiB, as far as its files' sizes tell. They take no room: no block is written."""
VERSION = "0.5.16"
"""Of the simulated engine, as its package says it."""

_FOLDERS = (
    *("bin", "dev", "home", "models/draft", "models/target", "servers", "site/sglang"),
    *("srv", "ssh", "starts", "tmp", "var/log", f"site/sglang-{VERSION}.dist-info"),
)

_LAUNCHER = '''"""Hands over to the simulated engine."""
import sys

sys.modules.setdefault("ssl", None)  # nobody here speaks TLS, and it weighs four megabytes
sys.path.insert(0, {where!r})

from specdash.sim.engine.main import main

main()
'''

_BENCHMARK = '''#!/usr/bin/env python3
"""Measure one stream: tokens a second of a single completion, five times."""
import json
import sys
import time
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:30000"
BODY = {"prompt": "The story so far: " * 24, "max_tokens": 512, "temperature": 0}


def once():
    began = time.time()
    data = json.dumps(BODY).encode()
    request = urllib.request.Request(URL + "/v1/completions", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        made = json.loads(answer.read())["usage"]["completion_tokens"]
    return made / (time.time() - began)


for n in range(5):
    print("throughput: %.2f tok/s" % once(), flush=True)
'''


def create() -> Path:
    """An empty folder that only this user may enter."""
    return Path(tempfile.mkdtemp(prefix=f"{HOSTNAME}-"))


def remove(folder: Path) -> None:
    """Take the folder away, whatever is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def furnish(folder: Path, options: Options) -> None:
    """Put everything into the folder that the host needs before its first process starts."""
    for part in _FOLDERS:
        (folder / part).mkdir(parents=True)
    now = time.time()
    clock = {"wall": now, "turns": [[time.clock_gettime(CLOCK_BOOTTIME), now, options.speed]]}
    about = {
        "hostname": HOSTNAME,
        "boot_id": str(uuid.uuid4()),
        "init": os.getpid(),
        "scenario": options.scenario,
        "speed": options.speed,
        "serving_speed": options.serving_speed,
    }
    _write(folder / "clock.json", clock)
    _write(folder / "host.json", about)
    for name in ("nvidia-uvm", "nvidiactl", *(f"nvidia{card}" for card in range(CARDS))):
        (folder / "dev" / name).write_bytes(bytes(4096))
    (folder / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    where = str(Path(__file__).resolve().parents[2])
    (folder / "site" / "sglang" / "__init__.py").touch()
    (folder / "site" / "sglang" / "launch_server.py").write_text(_LAUNCHER.format(where=where))
    about_it = f"Metadata-Version: 2.1\nName: sglang\nVersion: {VERSION}\n"
    (folder / "site" / f"sglang-{VERSION}.dist-info" / "METADATA").write_text(about_it)
    _models(folder / "models", SCENARIOS[options.scenario])
    (folder / "tmp" / "benchmark_eagle3.py").write_text(_BENCHMARK.ljust(BENCHMARK_BYTES - 1, "#") + "\n")


def _models(folder: Path, scenario: Scenario) -> None:
    target = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "max_position_embeddings": TARGET_CONTEXT,
        "num_hidden_layers": 61,
        "vocab_size": 163840,
    }
    draft = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": 7168,
        "max_position_embeddings": scenario.draft_context,
        "num_hidden_layers": 1,
        "draft_vocab_size": 32000,
        "vocab_size": 163840,
    }
    for name, config in (("target", target), ("draft", draft)):
        (folder / name / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    many = scenario.starts[0].shards
    names = [f"model-{n:05}-of-{many:05}.safetensors" for n in range(1, many + 1)]
    for name in names:
        _hollow(folder / "target" / name, WEIGHT_BYTES // many)
    _hollow(folder / "draft" / "model.safetensors", 2_018_508_800)
    weights = {f"model.layers.{n}.mlp.experts.weight": name for n, name in enumerate(names)}
    index = {"metadata": {"total_size": WEIGHT_BYTES // many * many}, "weight_map": weights}
    (folder / "target" / "model.safetensors.index.json").write_text(json.dumps(index))


def _hollow(path: Path, size: int) -> None:
    """A file of that size that takes no room."""
    path.touch()
    os.truncate(path, size)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """What a login on this host finds in its environment; nothing of ours leaks in."""
    return {
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "LOGNAME": getpass.getuser(),
        "PATH": f"{folder / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(folder / "site"),
        "SHELL": "/bin/sh",
        "SPECDASH_HOST_ADAPTER": str(Path(__file__).resolve().with_name("adapter.py")),
        "SPECDASH_SIM": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "USER": getpass.getuser(),
    }


def server_command(folder: Path, port: int, scenario: Scenario) -> list[str]:
    """The command line of the story's server."""
    models = folder / "models"
    return [
        *("python3", "-m", "sglang.launch_server", "--model-path", str(models / "target")),
        *("--served-model-name", "target-1t", "--tp", "8", "--host", "127.0.0.1", "--port", str(port)),
        "--enable-metrics",
        *scenario.flags,
        *speculation(folder, scenario),
    ]


def speculation(folder: Path, scenario: Scenario) -> list[str]:
    """The flags that make it speculate; without them it is the baseline."""
    return [
        *("--speculative-algorithm", "EAGLE3"),
        *("--speculative-draft-model-path", str(folder / "models" / "draft")),
        *("--speculative-num-steps", str(scenario.steps), "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(scenario.steps + 1)),
    ]


NCCL = {
    "NCCL_PROTO": "LL",
    "NCCL_ALGO": "Ring",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MIN_NCHANNELS": "8",
    "NCCL_NTHREADS": "256",
    "NCCL_CUMEM_ENABLE": "0",
}
"""The story's tuning, as it was exported before the launch."""
