"""What only the host's files tell of a measurement: a changed draft, a rewritten weight, another build."""

from __future__ import annotations

import json

from specdash.measuring.files import facts_of_files
from specdash.monitor.state import Server
from tests.measuring.scripted import FakeHost as Picture
from tests.operations.fakehost import FakeHost, sglang
from tests.tui import states

DRAFT = "/models/draft"


def host_with_models() -> tuple[FakeHost, Server]:
    host = FakeHost()
    server = sglang(host)
    argv = (
        "/usr/bin/python3 -m sglang.launch_server --model-path /models/target --port 30000"
        f" --speculative-algorithm EAGLE3 --speculative-draft-model-path {DRAFT}"
    )
    host.files["/usr/bin/python3"] = b"ELF"
    host.files["/proc/100/cmdline"] = argv.replace(" ", "\0").encode() + b"\0"
    for path in ("/models/target", DRAFT):
        files = {"config.json": b'{"max_position_embeddings": 4096}', "tokenizer.json": b"x" * (600 << 10)}
        index = json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}).encode()
        files["model.safetensors.index.json"] = index
        host.files.update({f"{path}/{name}": data for name, data in files.items()})
        sizes = {name: len(data) for name, data in files.items()}
        host.folders[path] = {**sizes, "m-1.safetensors": 3_000_000_000, "m-2.safetensors": 2_000_000_000}
    return host, server


async def test_models_draft_and_packages_are_in_it() -> None:
    host, server = host_with_models()
    found = await facts_of_files(host, server)
    assert found["model config"].startswith("sha256 ")
    assert found["draft config"] == found["model config"], "equal bytes"
    assert found["model weights"].startswith("2 files, 4.7 GiB, ")
    assert found["draft tokenizer"].startswith("614,400 bytes, the first 524,288: "), "more than one answer"
    assert found["package torch"] == "0.5.16"
    assert found["python"] == "3.12.3"
    assert "engine commit" not in found, "its version names none"
    assert host.effects == [], "it only looks"


async def test_a_changed_draft_is_seen_and_nothing_else() -> None:
    host, server = host_with_models()
    before = await facts_of_files(host, server)
    host.files[f"{DRAFT}/config.json"] = b'{"max_position_embeddings": 8192}'
    host.folders[DRAFT]["m-2.safetensors"] += 1
    after = await facts_of_files(host, server)
    assert {field for field in before if before[field] != after[field]} == {"draft config", "draft weights"}


async def test_a_build_names_its_commit() -> None:
    host, server = host_with_models()
    host.probe = {"python": {"version": "3.12.3", "modules": {"sglang": "0.5.7.dev3+gabcdef123"}}}
    assert (await facts_of_files(host, server))["engine commit"] == "abcdef123"


async def test_what_cannot_be_read_says_why() -> None:
    host, server = host_with_models()
    del host.folders["/models/target"]
    assert (await facts_of_files(host, server))["model files"] == "not read: no such file"


async def test_a_picture_alone_is_not_asked() -> None:
    picture = Picture(states.serving())
    assert await facts_of_files(picture, states.serving().servers[0]) == {}
