"""The preflight: each line says what was seen and what to do, and red stops a launch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specdash.operations import preflight
from specdash.operations.acts import Hands
from specdash.operations.checks import Line, passes, told
from specdash.operations.checks_host import disk
from specdash.operations.checks_model import Folder, complete
from specdash.operations.replies_probe import Place
from specdash.operations.work import Check, Launch
from tests.operations.fakehost import FakeHost, Proc, sglang

ARGV = (
    "python3 -m sglang.launch_server --model-path /models/target --tp 2 --port 30000"
    " --speculative-algorithm EAGLE3 --speculative-draft-model-path /models/draft"
    " --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)
TARGET = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "max_position_embeddings": 262144,
    "vocab_size": 163840,
}  # fmt: skip
DRAFT = {**TARGET, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000}
SHARDS = {f"model-{n:05}-of-00064.safetensors": 1 << 30 for n in range(1, 65)}


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    model(host, "/models/target", TARGET, SHARDS, total=64 << 30)
    model(host, "/models/draft", DRAFT, {"model.safetensors": 2 << 30})
    return host


def model(
    host: FakeHost, path: str, config: dict[str, Any], weights: dict[str, int], total: int | None = None
) -> None:
    host.files[f"{path}/config.json"] = json.dumps(config).encode()
    host.folders[path] = {"config.json": 100, **weights}
    if total is not None:
        names = {f"layer.{n}": name for n, name in enumerate(weights)}
        index = {"metadata": {"total_size": total}, "weight_map": names}
        host.files[f"{path}/model.safetensors.index.json"] = json.dumps(index).encode()
        host.folders[path]["model.safetensors.index.json"] = 1000


async def lines(
    host: FakeHost, argv: str = ARGV, env: dict[str, str] | None = None, log: str = "/l", **more: Any
) -> list[Line]:
    launch = Launch(
        name="main", engine=more.pop("engine", "sglang"), argv=tuple(argv.split()), env=env or {}, log=log
    )
    return list(await preflight.examine(Hands(host), Check(launch=launch, **more)))


def of(found: list[Line], key: str) -> list[str]:
    return [told(line) for line in found if line.key == key]


def red(found: list[Line]) -> list[str]:
    return [line.key for line in found if line.mark == "error"]


async def test_where_all_is_well_every_line_says_what_was_seen(host: FakeHost) -> None:
    found = await lines(host)
    assert [line for line in found if line.mark != "ok"] == []
    assert of(found, "gpus") == ["✓ gpus: GPU 0, 1 clean, at most 4 MiB in use"]
    assert of(found, "port") == ["✓ port: 30000 is free"]
    assert of(found, "model") == ["✓ model: 64 weight files, 64.0 GiB in /models/target"]
    assert of(found, "draft") == [
        "✓ draft: 1 weight file, 2.0 GiB in /models/draft",
        "✓ draft: context 262144, the target's is 262144",
    ]
    assert of(found, "version") == ["✓ version: sglang 0.5.16"]


async def test_a_card_that_is_held_is_red_and_names_the_holder_and_the_key_that_helps(host: FakeHost) -> None:
    host.add(Proc(900, 9000, "helper", gpu=1, mib=76000))
    assert of(await lines(host), "gpus") == [
        "✖ gpus: GPU 1 holds 74.2 GiB: 900 helper — `clean` (C) ends what holds it"
    ]


async def test_cards_that_one_running_server_holds_are_not_called_dirt(host: FakeHost) -> None:
    sglang(host)
    (held,) = of(await lines(host), "gpus")
    assert held.startswith("✖ gpus: GPU 0 holds 74.2 GiB: 101 ")
    assert held.endswith(" — that is sglang:30000, which `restart` (R) ends first")
    host.add(Proc(900, 9000, "helper", gpu=1, mib=100))
    assert of(await lines(host), "gpus")[0].endswith(" — `clean` (C) ends what holds it")


async def test_only_the_cards_that_the_launch_will_use_count(host: FakeHost) -> None:
    host.cards = 4
    host.add(Proc(900, 9000, "helper", gpu=3, mib=76000))
    assert "gpus" not in red(await lines(host))
    assert "gpus" in red(await lines(host, env={"CUDA_VISIBLE_DEVICES": "2,3"}))
    assert of(await lines(host, ARGV.replace("--tp 2", "--tp 8")), "gpus")[0].startswith(
        "✖ gpus: 4 of the 8 GPUs that it wants are there"
    )


async def test_a_taken_port_names_who_listens(host: FakeHost) -> None:
    listener = {"pid": 77, "start": 1, "title": "nginx", "user": "www", "address": "0.0.0.0"}
    host.probe = {"ports": [{"port": 30000, "free": False, "listeners": [listener]}]}
    assert of(await lines(host), "port") == [
        "✖ port: 30000 is taken by 77 nginx (www) — stop that, or another port"
    ]
    sglang(host)
    mine = {**listener, "pid": host.state.servers[0].pid, "title": "python3"}
    host.probe = {"ports": [{"port": 30000, "free": False, "listeners": [mine]}]}
    (told,) = of(await lines(host), "port")
    assert told.endswith(" — that is sglang:30000, which `restart` (R) ends first")
    host.probe = {"ports": [{"port": 30000, "free": False, "lingering": True}]}
    assert of(await lines(host), "port")[0].startswith("▲ port: 30000: only old connections linger")


async def test_a_port_that_a_starting_server_will_take_is_red_and_names_it(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    sglang(host, phase="warmup", state="warming")
    host.probe = {"ports": [{"port": 30000, "free": False, "lingering": True}]}
    assert of(await lines(host), "port") == [
        "✖ port: 30000 will be taken by sglang:30000 (pid 100), which is warming"
        " — that is sglang:30000, which `restart` (R) ends first"
    ]
    host.probe = {"ports": [{"port": 30001, "free": True}]}
    assert of(await lines(host, ARGV.replace("30000", "30001")), "port") == ["✓ port: 30001 is free"]
    host.probe = {"ports": [{"port": 30000, "free": False, "lingering": True}]}
    older: dict[str, Any] = {"alive": [], "zombies": [], "gone": []}
    monkeypatch.setattr(host, "do_alive", lambda request: older)  # the picture is older than its end
    assert of(await lines(host), "port")[0].startswith("▲")


async def test_the_rendezvous_port_is_looked_at_too(host: FakeHost) -> None:
    found = await lines(host, ARGV + " --dist-init-addr 10.0.0.1:5000")
    assert of(found, "rendezvous") == ["✓ rendezvous: 5000 is free"]


@pytest.mark.parametrize(
    ("harm", "seen"),
    [
        ("missing", "3 of 64 shards are missing, model-00007-of-00064.safetensors first"),
        ("empty", "1 weight files are empty, model-00007-of-00064.safetensors first"),
        ("cut", "63.0 GiB of the 64.0 GiB that its index names: a shard is cut"),
        ("pointer", "1 files are Git LFS pointers, model-00007-of-00064.safetensors first"),
        ("no weights", "/models/target has no weight files"),
        ("no config", "/models/target/config.json: missing"),
        ("bottomless config", "/models/target/config.json: not JSON: "),
        ("no folder", "/models/target: no such file"),
    ],
)
async def test_an_incomplete_model_is_found_before_twenty_minutes_of_loading(
    harm: str, seen: str, host: FakeHost
) -> None:
    folder, seventh = host.folders["/models/target"], "model-00007-of-00064.safetensors"
    if harm == "missing":
        for n in (7, 8, 64):
            del folder[f"model-{n:05}-of-00064.safetensors"]
    elif harm == "empty":
        folder[seventh] = 0
    elif harm == "cut":
        folder[seventh] = 0
        folder[seventh] = 1
    elif harm == "pointer":
        folder[seventh] = 134
        host.files[f"/models/target/{seventh}"] = (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"
        )
    elif harm == "no weights":
        host.folders["/models/target"] = {"config.json": 100}
    elif harm == "no config":
        del folder["config.json"]
    elif harm == "bottomless config":
        host.files["/models/target/config.json"] = b"[" * 200_000
    else:
        del host.folders["/models/target"]
    found = of(await lines(host), "model")
    assert found[0].startswith(f"✖ model: {seen}")


async def test_without_an_index_the_numbers_in_the_names_count(host: FakeHost) -> None:
    del host.folders["/models/target"]["model.safetensors.index.json"]
    assert red(await lines(host)) == []
    del host.folders["/models/target"]["model-00064-of-00064.safetensors"]
    assert of(await lines(host), "model")[0].startswith("✖ model: 1 of 64 shards are missing")


async def test_dummy_weights_need_no_shards(host: FakeHost) -> None:
    host.folders["/models/target"] = {"config.json": 100}
    assert red(await lines(host, ARGV + " --load-format dummy")) == []


async def test_a_draft_with_a_shorter_context_is_red_with_the_patch_and_the_override_named(
    host: FakeHost,
) -> None:
    model(host, "/models/draft", {**DRAFT, "max_position_embeddings": 131072}, {"model.safetensors": 2 << 30})
    found = of(await lines(host), "draft")
    assert found[1] == (
        "✖ draft: its context is shorter than the target's: 131072 < 262144 — "
        "patch max_position_embeddings in "
        "/models/draft/config.json, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
    )
    allowed = await lines(host, env={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"})
    assert "draft" not in red(allowed)
    assert "stretched by the environment" in of(allowed, "draft")[1]
    assert red(await lines(host, ARGV + " --context-length 131072")) == []
    vllm = 'vllm serve /models/target -tp 2 --speculative-config {"method":"eagle3","model":"/models/draft"}'
    assert "draft" not in red(await lines(host, vllm, engine="vllm"))


async def test_rope_scaling_counts_as_the_engine_counts_it(host: FakeHost) -> None:
    stretched = {**DRAFT, "max_position_embeddings": 65536, "rope_scaling": {"factor": 4.0, "type": "yarn"}}
    model(host, "/models/draft", stretched, {"model.safetensors": 1})
    assert "✓ draft: context 262144, the target's is 262144" in of(await lines(host), "draft")


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"hidden_size": 4096}, "✖ draft: hidden size 4096, the target has 7168"),
        ({"hidden_size": 4096, "target_hidden_size": 7168}, None),
        ({"vocab_size": 32000}, "✖ draft: vocabulary of 32000, the target has 163840"),
        ({"architectures": ["LlamaForCausalLM"]}, "▲ draft: LlamaForCausalLM is no draft of EAGLE3"),
    ],
)
async def test_a_draft_made_for_another_target_is_found(
    change: dict[str, Any], seen: str | None, host: FakeHost
) -> None:
    model(host, "/models/draft", {**DRAFT, **change}, {"model.safetensors": 1 << 30})
    found = of(await lines(host), "draft")
    assert any(line.startswith(seen) for line in found) if seen else red(await lines(host)) == []


async def test_a_small_shared_memory_a_full_disk_and_low_limits_are_said(host: FakeHost) -> None:
    host.probe = {
        "shm": {"total_mib": 64, "used_mib": 0},
        "paths": [{"path": "/l", "free_mib": 10, "total_mib": 100, "writable": True}],
        "limits": {"nofile": [1024, 4096], "memlock": [65536, 65536], "nproc": [-1, -1]},
    }
    found = await lines(host)
    assert of(found, "shm") == [
        "✖ shm: 64 MiB of 64 MiB free in /dev/shm — docker: --shm-size=32g or --ipc=host"
    ]
    assert of(found, "disk")[0] == "✖ disk: 10 MiB free where /l lies — free some space there"
    assert "nofile 1024 (ulimit -n)" in of(found, "ulimits")[0]


async def test_a_folder_that_is_not_there_takes_no_log(host: FakeHost) -> None:
    room = {"free_mib": 50000, "total_mib": 99999, "writable": True}
    host.probe = {"paths": [{"path": "/l", "folder": "/", **room}]}
    assert of(await lines(host), "disk")[0] == "✓ disk: 48.8 GiB free where /l lies"
    host.probe = {"paths": [{"path": "/no pe/x.log", "folder": "/", **room}]}
    found = await lines(host, log="/no pe/x.log")
    assert of(found, "disk")[0] == (
        "✖ disk: /no pe is not there, so /no pe/x.log cannot be written — on the host: mkdir -p '/no pe'"
    )
    place = Place(path="/no/x.log", folder="/", free_mib=50000, writable=True)
    assert disk("disk", place, "/no/x.log").mark == "error"
    assert disk("disk", place, "/no/x.log", ours=False).mark == "warning", "a manager may make its folder"


async def test_files_that_are_wanted_after_the_start_are_looked_for_before_it(host: FakeHost) -> None:
    host.files["/tmp/benchmark_eagle3.py"] = b"x" * 5518
    found = await lines(host, files=("/tmp/benchmark_eagle3.py", "/tmp/other.py"))
    assert of(found, "files") == [
        "✓ files: /tmp/benchmark_eagle3.py, 5518 bytes",
        "✖ files: /tmp/other.py: no such file — put it there first",
    ]


async def test_a_changed_engine_version_is_said_and_stops_nothing(host: FakeHost) -> None:
    found = await lines(host, last_good="0.4.6")
    assert of(found, "version") == [
        "▲ version: sglang 0.4.6 → 0.5.16 since the last good launch — mind it if it fails"
    ]
    assert preflight.version_of(found) == "0.5.16"
    assert red(found) == []


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ("0.32.0", "0.32.0+cpu", False),
        ("0.32.0+cpu", "0.32.0", False),
        ("0.32.0+cpu", "0.32.0+cpu", False),
        ("0.32.0+cu129", "0.32.0+cu130", True),
        ("0.32.0", "0.32.1+cpu", True),
        ("0.32.0", "0.32.0.post1", True),
    ],
)
async def test_a_local_part_of_a_version_that_one_side_does_not_tell_is_no_change(
    host: FakeHost, before: str, now: str, changed: bool
) -> None:
    host.probe = {"python": {"version": "3.12", "modules": {"vllm": now}}}
    [line] = of(
        await lines(host, "vllm serve /models/target --port 8000", engine="vllm", last_good=before), "version"
    )
    assert line.startswith("▲") == changed
    assert ("since the last good launch" in line) == changed


@pytest.mark.parametrize(
    ("version", "flags", "why"),
    [
        ("0.32.0+cpu", "", "a CPU build"),
        ("0.32.0", "--device cpu", "--device cpu"),
        ("0.32.0+cu130", "", None),
    ],
)
async def test_a_build_for_the_cpu_needs_neither_cards_nor_driver(
    host: FakeHost, version: str, flags: str, why: str | None
) -> None:
    host.cards, host.gpus_error = 0, "libnvidia-ml.so.1 is not there"
    host.probe = {"python": {"version": "3.12", "modules": {"vllm": version}}}
    found = await lines(host, f"vllm serve /models/target --port 8000 {flags}", engine="vllm")
    if why is None:
        assert red(found) == ["driver"]
    else:
        assert red(found) == []
        assert of(found, "gpus") == [f"✓ gpus: not needed: {why}"]
        assert of(found, "driver") == [f"✓ driver: not needed: {why}"]


@pytest.mark.parametrize(
    ("version", "flag", "seen"),
    [
        ("0.5.16", "--cuda-graph-max-bs 16", None),
        ("0.5.20", "--cuda-graph-max-bs 16", "--cuda-graph-max-bs went after sglang 0.5.19; this is 0.5.20"),
        (
            "0.5.16",
            "--cuda-graph-max-bs-decode=16",
            "--cuda-graph-max-bs-decode came with sglang 0.5.20; this is",
        ),
        ("0.5.12.post1", "--soft-watchdog-timeout 15", None),
        ("0.5.2", "--soft-watchdog-timeout 15", "--soft-watchdog-timeout came with sglang 0.5.9"),
    ],
)
async def test_a_flag_that_this_version_does_not_take_is_red(
    version: str, flag: str, seen: str | None, host: FakeHost
) -> None:
    host.probe = {"python": {"version": "3.12", "modules": {"sglang": version}}}
    found = await lines(host, f"{ARGV} {flag}")
    assert ("flags" in red(found)) == (seen is not None)
    assert seen is None or of(found, "flags")[0].startswith(f"✖ flags: {seen}")


async def test_half_of_sglangs_three_speculation_numbers_is_red(host: FakeHost) -> None:
    found = await lines(host, ARGV.replace("--speculative-num-steps 3", ""))
    assert of(found, "flags")[0].startswith("✖ flags: --speculative-num-steps is missing")


async def test_what_cannot_be_seen_is_unknown_and_accuses_nobody(host: FakeHost) -> None:
    host.probe = {"ports": [], "paths": [], "shm": None, "limits": {}, "python": None}
    found = await lines(host, "python3 -m sglang.launch_server --model-path org/model")
    assert red(found) == []
    assert {line.key for line in found if line.mark == "unknown"} >= {
        "port",
        "shm",
        "ulimits",
        "model",
        "version",
    }
    assert all(passes(line, ()) for line in found if line.mark == "unknown")


async def test_a_name_on_the_hub_is_looked_up_in_the_cache(host: FakeHost) -> None:
    env = {"HF_HOME": "/cache", "HF_HUB_OFFLINE": "1"}
    argv = "python3 -m sglang.launch_server --model-path org/model --tp 2"
    assert of(await lines(host, argv, env), "model")[0].startswith("✖ model: org/model is not in /cache/hub")
    folder = "/cache/hub/models--org--model"
    host.files[f"{folder}/refs/main"] = b"abc\n"
    model(host, f"{folder}/snapshots/abc", TARGET, {"model.safetensors": 1 << 30})
    assert of(await lines(host, argv, env), "model")[0].startswith("✓ model: 1 weight file")


async def test_a_dead_driver_is_one_red_line_and_one_word_to_force(host: FakeHost) -> None:
    host.cards, host.gpus_error = 0, "driver/library version mismatch"
    found = await lines(host)
    assert red(found) == ["driver"]
    assert of(found, "gpus") == ["? gpus: not looked at: see driver"]
    assert of(found, "driver") == ["✖ driver: driver/library version mismatch — see `doctor`"]


async def test_before_a_restart_only_what_the_old_server_does_not_change_is_looked_at(host: FakeHost) -> None:
    sglang(host)
    launch = Launch(name="main", engine="sglang", argv=tuple(ARGV.split()), log="/l")
    found = await preflight.examine(Hands(host), Check(launch=launch), lasting=True)
    assert {line.key for line in found} == {"disk", "ulimits", "driver", "model", "draft", "version", "flags"}
    assert red(list(found)) == []


def test_a_folder_that_is_not_there_is_named_once() -> None:
    why = "No such file or directory: /models/target"
    [line] = complete("model", Folder(path="/models/target", exists=False, error=why))
    assert line.seen == "/models/target: No such file or directory"
