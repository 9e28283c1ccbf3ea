"""A link of a model cache becomes a private copy, and is put back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specdash.agent import rewrite, wire
from specdash.agent.records import Record
from tests.agent.edits import NEW, OLD, acts_in, asked, sha, write
from tests.agent.hands import Hands


@pytest.fixture
def snapshots(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A Hugging Face cache with two revisions that share a blob: (link, other link, blob)."""
    hub = tmp_path / "hub" / "models--a--b"
    (hub / "blobs").mkdir(parents=True)
    blob = hub / "blobs" / sha(OLD)
    blob.write_bytes(OLD)
    links = []
    for revision in ("one", "two"):
        (hub / "snapshots" / revision).mkdir(parents=True)
        link = hub / "snapshots" / revision / "config.json"
        link.symlink_to(f"../../blobs/{blob.name}")
        links.append(link)
    return links[0], links[1], blob


def test_a_link_of_a_hugging_face_cache_becomes_a_private_copy(
    hands: Hands, snapshots: tuple[Path, Path, Path]
) -> None:
    link, other, blob = snapshots
    seen = hands.do("read_file", path=str(link))
    assert (seen["hf_cache"], seen["link"], seen["real"]) == (True, f"../../blobs/{blob.name}", str(blob))
    done = write(hands, link, NEW, OLD)
    assert not link.is_symlink()
    assert (link.read_bytes(), other.read_bytes(), blob.read_bytes()) == (NEW, OLD, OLD)
    hands.do("restore", backup=done["backup"], expect=sha(NEW))
    assert os.readlink(link) == f"../../blobs/{blob.name}"  # noqa: PTH115
    assert link.read_bytes() == OLD


def test_the_cache_can_be_reached_by_a_linked_folder(
    hands: Hands, snapshots: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    link, other, _ = snapshots
    (tmp_path / "draft").symlink_to(link.parent)
    write(hands, tmp_path / "draft" / "config.json", NEW, OLD)
    assert (link.read_bytes(), other.read_bytes()) == (NEW, OLD)


def test_a_link_is_not_put_back_where_its_blob_is_gone(
    hands: Hands, snapshots: tuple[Path, Path, Path]
) -> None:
    link, _, blob = snapshots
    done = write(hands, link, NEW, OLD)
    blob.unlink()
    assert "no longer there" in hands.refusal("restore", backup=done["backup"], expect=sha(NEW))
    assert link.read_bytes() == NEW


def test_of_two_that_replace_the_same_link_one_wins(
    place: Path, snapshots: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, _, _ = snapshots
    acts = acts_in(place)
    lock = rewrite.Swap._lock

    def meanwhile(self: rewrite.Swap) -> None:
        lock(self)
        link.unlink()
        link.write_bytes(b"theirs")

    monkeypatch.setattr(rewrite.Swap, "_lock", meanwhile)
    with pytest.raises(wire.BadRequest, match="leads elsewhere now"):
        rewrite.write_file(acts, asked(link, NEW, OLD), Record(str(place / "record"), acts.host))
    assert link.read_bytes() == b"theirs"
