"""Files are changed by compare-and-swap, in one piece, and can be put back as they were."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import files, rewrite, wire
from specdash.agent.records import Record
from tests.agent.edits import NEW, OLD, acts_in, asked, refused, sha, write
from tests.agent.hands import Hands, root


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "model" / "config.json"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


# ------------------------------------------------------------------ reading


def test_a_file_is_read_with_all_that_an_edit_needs(hands: Hands, config: Path) -> None:
    config.chmod(0o640)
    seen = hands.do("read_file", path=str(config))
    assert base64.b64decode(seen["data"]) == OLD
    assert (seen["sha256"], seen["truncated"], seen["exists"]) == (sha(OLD), False, True)
    found = config.stat()
    told = seen["stat"]
    assert (told["kind"], told["mode"], told["size"], told["nlink"]) == ("file", 0o640, len(OLD), 1)
    assert (told["uid"], told["ino"], told["mtime"]) == (found.st_uid, found.st_ino, round(found.st_mtime, 3))
    assert (seen["link"], seen["hf_cache"], seen["writable"]) == (None, False, True)


def test_a_long_file_comes_in_parts_and_without_a_hash(hands: Hands, config: Path) -> None:
    config.write_bytes(bytes(range(256)) * 4)
    first = hands.do("read_file", path=str(config), limit=1000)
    rest = hands.do("read_file", path=str(config), limit=1000, offset=1000)
    assert base64.b64decode(first["data"]) + base64.b64decode(rest["data"]) == config.read_bytes()
    assert (first["sha256"], first["truncated"], rest["sha256"]) == (None, True, None)


def test_no_answer_is_longer_than_a_line_may_be(hands: Hands, config: Path) -> None:
    config.write_bytes(bytes(3 << 20))
    token = hands.send("read_file", path=str(config), limit=3 << 20)
    assert len(base64.b64decode(hands.reply(token).value["data"])) == 512 * 1024
    assert max(map(len, hands.raw)) < 1 << 20


def test_what_is_not_there_is_an_answer(hands: Hands, tmp_path: Path) -> None:
    seen = hands.do("read_file", path=str(tmp_path / "nothing"))
    assert (seen["exists"], seen["sha256"], seen["stat"]) == (False, None, None)


def test_a_pipe_is_not_waited_for(hands: Hands, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a plain file" in hands.refusal("read_file", path=str(tmp_path / "pipe"))
    assert "not a plain file" in hands.refusal("read_file", path=str(tmp_path))


def test_a_file_system_that_hangs_holds_no_request(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the very server that is to be killed may lie on it."""
    answers, hangs, stat = threading.Event(), str(tmp_path / "dead"), os.stat

    def hanging(path: Any, *more: Any, **named: Any) -> os.stat_result:
        if str(path) == hangs:
            answers.wait(120)
        return stat(path, *more, **named)

    monkeypatch.setattr(files, "ANSWER_LIMIT", 0.1)
    monkeypatch.setattr(os, "stat", hanging)
    monkeypatch.setattr(files, "open_file", lambda path: hanging(hangs))
    asked = {"paths": [hangs, str(config)], "head": 0}
    try:
        rows = files.stat_files(acts_in(tmp_path), asked)["files"]
        assert [row["error"] for row in rows] == ["no answer from the file system"] * 2
        with pytest.raises(OSError, match="no answer"):
            files.read_file(acts_in(tmp_path), {"path": hangs})
    finally:
        answers.set()


def test_facts_for_a_check_before_a_launch(hands: Hands, config: Path) -> None:
    index = config.with_name("model.safetensors.index.json")
    index.write_text(
        '{"weight_map": {"a": "model-2.safetensors", "b": "model-1.safetensors", "c": "model-1.safetensors"}}'
    )
    (config.parent / "model-1.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    (config.parent / "model-2.safetensors").symlink_to("nowhere")
    paths = [
        config.parent,
        index,
        config.parent / "model-1.safetensors",
        config.parent / "model-2.safetensors",
    ]
    rows = hands.do("stat_files", paths=list(map(str, paths)), head=20)["files"]
    assert [row["exists"] for row in rows] == [True, True, True, False]
    assert dict(rows[0]["entries"]) == {
        "config.json": len(OLD),
        "model-1.safetensors": 43,
        "model-2.safetensors": -1,
        "model.safetensors.index.json": index.stat().st_size,
    }
    assert rows[1]["shards"] == ["model-1.safetensors", "model-2.safetensors"]
    assert base64.b64decode(rows[2]["head"]) == b"version https://git-"
    assert (rows[3]["link"], "No such file" in rows[3]["error"]) == ("nowhere", True)


# ------------------------------------------------------------------ writing


def test_a_file_is_replaced_and_put_back(hands: Hands, config: Path, place: Path) -> None:
    config.chmod(0o640)
    done = write(hands, config, NEW, OLD)
    assert config.read_bytes() == NEW
    assert (done["sha256"], done["before"], done["notes"]) == (sha(NEW), sha(OLD), [])
    assert config.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in config.parent.iterdir()] == ["config.json"]
    saved = place / "state" / "backups" / (done["backup"] + ".data")
    assert saved.read_bytes() == OLD
    assert saved.stat().st_mode & 0o777 == 0o600
    assert (place / "state" / "backups").stat().st_mode & 0o777 == 0o700
    undone = hands.do("restore", backup=done["backup"], expect=done["sha256"])
    assert (config.read_bytes(), undone["sha256"]) == (OLD, sha(OLD))
    # Undoing can be undone, too.
    again = hands.do("restore", backup=undone["backup"], expect=sha(OLD))
    assert (config.read_bytes(), again["sha256"]) == (NEW, sha(NEW))


def test_a_file_that_somebody_has_changed_is_left_alone(hands: Hands, config: Path, place: Path) -> None:
    config.write_bytes(b"theirs")
    assert refused(hands, config, NEW, OLD).startswith("changed:")
    assert config.read_bytes() == b"theirs"
    assert not (place / "state").exists()


def test_an_undo_over_somebodys_change_is_refused(hands: Hands, config: Path) -> None:
    done = write(hands, config, NEW, OLD)
    config.write_bytes(b"theirs")
    assert hands.refusal("restore", backup=done["backup"], expect=done["sha256"]).startswith("changed:")
    assert config.read_bytes() == b"theirs"


def test_a_change_between_reading_and_replacing_is_seen(
    config: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = acts_in(place)
    dress = rewrite.Swap._dress

    def meanwhile(self: rewrite.Swap, fd: int, about: Any) -> None:
        dress(self, fd, about)
        config.write_bytes(b"theirs")

    monkeypatch.setattr(rewrite.Swap, "_dress", meanwhile)
    with pytest.raises(wire.BadRequest, match="was changed just now by somebody else"):
        rewrite.write_file(acts, asked(config, NEW, OLD), Record(str(place / "record"), acts.host))
    assert config.read_bytes() == b"theirs"
    assert [path.name for path in config.parent.iterdir()] == ["config.json"]


def test_of_several_at_once_one_wins(place: Path, config: Path) -> None:
    results: list[bool] = []
    with contextlib.ExitStack() as stack:
        agents = [stack.enter_context(Hands(place)) for _ in range(3)]

        def press(hands: Hands, data: bytes) -> None:
            results.append(hands.reply(hands.send("write_file", **asked(config, data, OLD))).ok)

        threads = [threading.Thread(target=press, args=(hands, b"%d" % n)) for n, hands in enumerate(agents)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert sorted(results) == [False, False, True]
    assert config.read_bytes() in (b"0", b"1", b"2")


def test_a_reader_never_sees_half_a_file(hands: Hands, config: Path) -> None:
    versions = [b"a" * 300_000, b"b" * 300_000]
    config.write_bytes(versions[0])
    torn: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            data = config.read_bytes()
            if data not in versions:
                torn.append(len(data))

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(20):
        write(hands, config, versions[1 - n % 2], versions[n % 2], backup=False)
    stop.set()
    reader.join()
    assert torn == []


def test_a_new_file_is_made_only_where_there_is_none(hands: Hands, tmp_path: Path) -> None:
    path = tmp_path / "new.env"
    done = write(hands, path, b"A=1\n", None)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"A=1\n", 0o644)
    assert refused(hands, path, b"A=2\n", None).startswith("changed:")
    undone = hands.do("restore", backup=done["backup"], expect=sha(b"A=1\n"))
    assert not path.exists()
    assert undone["sha256"] is None
    hands.do("restore", backup=undone["backup"], expect=None)
    assert path.read_bytes() == b"A=1\n"


# ------------------------------------------------------------------ owners, attributes, links


def test_the_owner_is_kept(hands: Hands, config: Path) -> None:
    if not root():
        pytest.skip("only root can give a file away")
    os.chown(config, 65534, 65534)
    write(hands, config, NEW, OLD)
    assert (config.stat().st_uid, config.stat().st_gid) == (65534, 65534)


def test_where_the_owner_cannot_be_kept_nothing_is_changed() -> None:
    if not root():
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        config = folder / "config.json"
        config.write_bytes(OLD)
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            says = "nothing was refused"
            try:
                acts = acts_in(folder)
                rewrite.write_file(acts, asked(config, NEW, OLD), Record(str(folder / "record"), acts.host))
            except wire.BadRequest as bad:
                says = str(bad)
            finally:
                (folder / "says").write_text(says)
                os._exit(0)
        os.waitpid(child, 0)
        assert "belongs to another user" in (folder / "says").read_text()
        assert config.read_bytes() == OLD


def test_extended_attributes_are_kept(hands: Hands, config: Path) -> None:
    try:
        os.setxattr(config, "user.origin", b"a note")
    except OSError as error:
        pytest.skip(f"this file system has no extended attributes: {error}")
    done = write(hands, config, NEW, OLD)
    assert os.getxattr(config, "user.origin") == b"a note"
    assert hands.do("read_file", path=str(config))["xattrs"] == ["user.origin"]
    hands.do("restore", backup=done["backup"], expect=sha(NEW))
    assert os.getxattr(config, "user.origin") == b"a note"


def test_any_other_link_is_written_through(hands: Hands, config: Path, tmp_path: Path) -> None:
    link = tmp_path / "current.json"
    link.symlink_to(config)
    done = write(hands, link, NEW, OLD)
    assert link.is_symlink()
    assert (config.read_bytes(), done["real"]) == (NEW, str(config))


def test_hard_links_are_warned_about(hands: Hands, config: Path, tmp_path: Path) -> None:
    os.link(config, tmp_path / "other")
    done = write(hands, config, NEW, OLD)
    assert "2 hard links" in done["notes"][0]
    assert (tmp_path / "other").read_bytes() == OLD


# ------------------------------------------------------------------ what goes wrong


def test_a_damaged_backup_changes_nothing(hands: Hands, config: Path, place: Path) -> None:
    done = write(hands, config, NEW, OLD)
    (place / "state" / "backups" / (done["backup"] + ".data")).write_bytes(b"rot")
    assert "damaged" in hands.refusal("restore", backup=done["backup"], expect=sha(NEW))
    assert config.read_bytes() == NEW


def test_a_full_disk_leaves_the_old_file(place: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    if not root() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    try:
        config = small / "config.json"
        config.write_bytes(OLD)
        with Hands(place) as hands:
            assert "No space left" in refused(hands, config, b"x" * 400_000, OLD)
        assert config.read_bytes() == OLD
        assert [path.name for path in small.iterdir()] == ["config.json"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"data": "not base64!"}, "not base64"),
        ({"path": "config.json"}, "a path begins at the root"),
        ({"path": "/nowhere/config.json"}, "No such file or directory"),
        ({"link": "copy"}, "replaced or written through"),
        ({"expect": 7}, "expect is a sha256"),
    ],
)
def test_a_wish_that_makes_no_sense_changes_nothing(
    hands: Hands, config: Path, fields: dict[str, Any], says: str
) -> None:
    wish = {**asked(config, NEW, OLD), **fields}
    if fields.get("path") == "/nowhere/config.json":
        wish["expect"] = None
    assert says in hands.refusal("write_file", **wish)
    assert config.read_bytes() == OLD
