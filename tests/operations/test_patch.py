"""Patching a file on the host: shown as a diff, written if it still is what was shown, taken back."""

from __future__ import annotations

import json

import pytest

from specdash.errors import SpecdashError
from specdash.operations import patch, remedies
from specdash.operations.acts import Hands
from specdash.operations.journal import Journal
from specdash.operations.rules import Rules
from specdash.operations.work import Edit, Launch
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost

PATH = "/models/draft/config.json"
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 7168, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05, "vocab_size": 163840,
}  # fmt: skip
TARGET = {"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "max_position_embeddings": 262144}
WIDER = [Edit(key="max_position_embeddings", value="262144")]


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    host.files[PATH] = json.dumps(DRAFT, indent=2).encode()
    host.files["/models/target/config.json"] = json.dumps(TARGET).encode()
    return host


async def test_a_patch_shows_its_diff_writes_one_line_and_is_taken_back(
    host: FakeHost, carry: Carry, journal: Journal
) -> None:
    before = host.files[PATH]
    plan = await patch.prepare(host, PATH, WIDER)
    changed = [line for line in plan.steps[0].preview[2:] if line[0] in "+-"]
    assert changed == ['-  "max_position_embeddings": 131072,', '+  "max_position_embeddings": 262144,']
    assert host.effects == []
    plan = await carry(plan)
    assert plan.ok
    assert host.files[PATH] == before.replace(b"131072", b"262144")
    back, patched = patch.undo(host, journal)
    assert patched.id == plan.id
    assert back.steps[0].preview[2:] == (
        '-  "max_position_embeddings": 262144,',
        '+  "max_position_embeddings": 131072,',
    )
    assert (await carry(back)).ok
    assert host.files[PATH] == before
    journal.undone(patched.id, back.id)
    with pytest.raises(SpecdashError, match="no patch of this host"):
        patch.undo(host, journal)


async def test_a_file_that_changed_since_it_was_shown_is_not_written(host: FakeHost, carry: Carry) -> None:
    plan = await patch.prepare(host, PATH, WIDER)
    host.files[PATH] = host.files[PATH].replace(b"7168", b"4096")
    plan = await carry(plan)
    assert plan.failed is not None
    assert "has changed since it was shown" in plan.failed.evidence
    assert host.effects == []


async def test_an_undo_does_not_overwrite_what_somebody_wrote_meanwhile(
    host: FakeHost, carry: Carry, journal: Journal
) -> None:
    await carry(await patch.prepare(host, PATH, WIDER))
    host.files[PATH] += b"\n"
    back, _ = patch.undo(host, journal)
    back = await carry(back)
    assert back.failed is not None
    assert back.failed.evidence.startswith("changed:")


async def test_a_link_of_the_model_cache_is_replaced_and_it_says_so(host: FakeHost) -> None:
    host.hf_links.add(PATH)
    plan = await patch.prepare(host, PATH, WIDER)
    assert plan.steps[0].work.link == "replace"  # type: ignore[union-attr]
    assert "replaced by a private copy" in plan.warnings[0]


@pytest.mark.parametrize(
    ("path", "edits", "why"),
    [
        ("/nowhere/config.json", WIDER, "there is no such file on the host"),
        (PATH, [Edit(key="max_position_embeddings", value="131072")], "nothing would change"),
        (PATH, [Edit(key="max_positions", value="1")], "did you mean max_position_embeddings?"),
        ("/models/draft/model.safetensors", WIDER, "not known how to edit it"),
    ],
)
async def test_what_cannot_be_patched_is_refused_before_anything_happens(
    path: str, edits: list[Edit], why: str, host: FakeHost
) -> None:
    host.files["/models/draft/model.safetensors"] = b"x"
    with pytest.raises(SpecdashError) as error:
        await patch.prepare(host, path, edits)
    assert why in str(error.value)
    assert host.effects == []


async def test_a_production_host_needs_its_name_typed_for_a_patch(host: FakeHost) -> None:
    plan = await patch.prepare(host, PATH, WIDER, rules=Rules(production=True))
    assert plan.typing is not None
    assert plan.typing.word == "gpubox"


async def test_a_secret_in_an_env_file_is_written_but_neither_shown_nor_kept(
    host: FakeHost, carry: Carry, journal: Journal
) -> None:
    host.files["/srv/.env"] = b"HF_TOKEN=hf_oldoldoldoldoldoldold\nPORT=1\n"
    plan = await patch.prepare(host, "/srv/.env", [Edit(key="HF_TOKEN", value="hf_newnewnewnewnewnewnew")])
    assert "hf_" not in "".join(plan.steps[0].preview)
    assert (await carry(plan)).ok
    assert host.files["/srv/.env"] == b"HF_TOKEN=hf_newnewnewnewnewnewnew\nPORT=1\n"
    assert b"newnew" not in b"".join(path.read_bytes() for path in journal.folder.iterdir())


COMMAND = (
    "python3 -m sglang.launch_server --model-path /models/target --speculative-algorithm EAGLE3"
    " --speculative-draft-model-path /models/draft"
)


async def test_a_known_failure_comes_with_its_fixes_ready_to_review(host: FakeHost) -> None:
    launch = Launch(name="main", engine="sglang", argv=tuple(COMMAND.split()))
    wider, override = await remedies.fixes(Hands(host), "draft_context_mismatch", launch)
    assert wider.title == "patch max_position_embeddings in the draft's config.json: 131072 → 262144"
    assert (wider.path, wider.edits) == (PATH, tuple(WIDER))
    assert override.env == {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    plan = await patch.prepare(host, wider.path or "", wider.edits)
    assert '+  "max_position_embeddings": 262144,' in plan.steps[0].preview
    assert await remedies.fixes(Hands(host), "oom_capture", launch) == ()


async def test_without_the_configs_only_the_override_is_offered(host: FakeHost) -> None:
    del host.files[PATH]
    launch = Launch(name="main", engine="sglang", argv=tuple(COMMAND.split()))
    assert len(await remedies.fixes(Hands(host), "draft_context_mismatch", launch)) == 1
