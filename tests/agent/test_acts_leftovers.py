"""Files of dead ranks are listed and removed; nothing that anybody may still need is."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import leftovers as clearing
from specdash.agent.acts import Acts
from specdash.agent.host import Host
from tests.agent.hands import Hands, furnish, root, until

DEAD = 4_100_000
"""A pid that no process has: above what this kernel gives."""
LONG_AGO = 3600.0


def put(path: Path, data: bytes = b"x" * 5000, age: float = LONG_AGO) -> Path:
    path.write_bytes(data)
    os.utime(path, (time.time() - age,) * 2)
    return path


def socket_at(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(path))
    os.utime(path, (time.time() - LONG_AGO,) * 2)
    return made


class Quiet(Host):
    """A host on which only chosen processes run: engines of other people's tests are none of ours."""

    def __init__(self, place: Path, pids: list[int]) -> None:
        self.place = place
        self.alive = pids

    def pids(self) -> list[int]:
        return self.alive

    def run_folder(self) -> str:
        return str(self.place / "run")

    def leftover_folders(self) -> dict[str, str]:
        return {"shm": str(self.place / "shm"), "tmp": str(self.place / "tmp")}


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: a socket's has room for 108 bytes."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp"))
    yield furnish(folder)
    shutil.rmtree(folder)


def look(place: Path, *pids: int) -> dict[str, Any]:
    return clearing.leftovers(Acts(Quiet(place, list(pids)), {}, lambda _: None, lambda _: None), {})


def listed(place: Path, *pids: int) -> set[str]:
    return {Path(row["path"]).name for row in look(place, *pids)["files"]}


@pytest.mark.parametrize(
    "name",
    [
        "sgl_shm_mm_{pid}_a1b2c3",
        "multi_tokenizer_args_{pid}",
        "sem.loky-{pid}-x7k2m1pq",
        "torch_{pid}_3391028_12",
        "cuda.shm.0.{pid:x}.1",
    ],
)
def test_a_pid_in_the_name_decides(place: Path, name: str) -> None:
    dead, living = (
        put(place / "shm" / name.format(pid=DEAD)),
        put(place / "shm" / name.format(pid=os.getppid())),
    )
    answer = look(place, os.getppid())
    assert [row["path"] for row in answer["files"]] == [str(dead)]
    [row] = answer["files"]
    assert (row["pid"], row["size"], row["kind"]) == (DEAD, 8192, "file")
    assert row["age"] == pytest.approx(LONG_AGO, abs=100)
    assert f"process {DEAD} is dead" in row["why"]
    assert answer["kept"] == [{"path": str(living), "why": f"process {os.getppid()} lives"}]


PIDLESS = ["psm_3929bab3", "sem.mp-tw1gxgc0", "nccl-Ab12Cd", "sglang_loads_30000.shm"]


def test_without_a_pid_no_engine_may_run(place: Path) -> None:
    for name in PIDLESS:
        put(place / "shm" / name)
    put(place / "tmp" / ("vllm_dist_" + "0f" * 16))
    assert listed(place) == {*PIDLESS, "vllm_dist_" + "0f" * 16}
    engine = subprocess.Popen(
        ["VLLM::EngineCore", "-c", "input()"], executable=sys.executable, stdin=subprocess.PIPE
    )
    try:
        until(lambda: b"EngineCore" in Path(f"/proc/{engine.pid}/cmdline").read_bytes())
        answer = look(place, engine.pid)
        assert answer["files"] == []
        assert {row["why"] for row in answer["kept"]} == {f"an engine runs (process {engine.pid})"}
    finally:
        engine.kill()
        engine.communicate()
    assert listed(place, engine.pid) == {*PIDLESS, "vllm_dist_" + "0f" * 16}


def test_what_is_open_or_mapped_is_kept_even_when_its_maker_is_dead(place: Path) -> None:
    opened = put(place / "shm" / f"torch_{DEAD}_1_1")
    mapped = put(place / "shm" / f"torch_{DEAD}_1_2")
    with opened.open() as file, mapped.open() as other:
        held = mmap.mmap(other.fileno(), 0, prot=mmap.PROT_READ)
        other.close()
        assert {row["why"] for row in look(place, os.getpid())["kept"]} == {"a process has it open"}
        held.close()
        file.close()
    assert listed(place, os.getpid()) == {opened.name, mapped.name}


def test_of_very_many_files_the_first_are_told_and_how_many_more_there_are(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of more than a mebibyte is thrown away on the other side: nobody would ever have an answer."""
    monkeypatch.setattr(clearing, "MOST", 2)
    made = [put(place / "shm" / f"torch_{DEAD}_1_{number}") for number in range(5)]
    answer = look(place)
    assert (len(answer["files"]), answer["more"]) == (2, 3)
    with made[0].open(), made[1].open(), made[2].open():
        answer = look(place, os.getpid())
    assert (len(answer["files"]), answer["more"], len(answer["kept"])) == (2, 0, 2)


def test_sockets_that_nobody_listens_on_are_leftovers(place: Path) -> None:
    names = [str(uuid.uuid4()), str(uuid.uuid4()), "tmpab3_x9qz"]
    with contextlib.ExitStack() as stack:
        for name in names[1:]:
            socket_at(place / "tmp" / name).close()
        stack.enter_context(socket_at(place / "tmp" / names[0]))
        put(place / "tmp" / "tmpfile_123")  # a plain file of such a name is somebody's own
        answer = look(place)
        assert {Path(row["path"]).name for row in answer["files"]} == set(names[1:])
        assert {row["kind"] for row in answer["files"]} == {"socket"}
        assert answer["kept"] == [{"path": str(place / "tmp" / names[0]), "why": "a process listens there"}]


def test_a_file_of_this_moment_may_not_be_in_anybodys_hands_yet(place: Path) -> None:
    put(place / "shm" / f"torch_{DEAD}_1_1", age=1)
    assert listed(place) == set()


@pytest.mark.parametrize(
    "name",
    [
        "precious",
        "psm_",
        "psm_nothexxx",
        "torch_",
        "torchinductor_root",
        "sem.mine",
        "nccl.conf",
        "vllm_dist_x",
    ],
)
def test_other_files_are_nobodys_leftovers(place: Path, name: str) -> None:
    put(place / "shm" / name)
    put(place / "tmp" / name)
    assert look(place)["files"] == []


def test_a_link_is_no_leftover(place: Path) -> None:
    (place / "shm" / f"torch_{DEAD}_1_1").symlink_to(put(place / "precious"))
    assert look(place)["files"] == []


def test_other_users_files_are_kept_where_their_processes_cannot_be_looked_into(place: Path) -> None:
    if not root():
        pytest.skip("only root can become another user")
    place.chmod(0o755)
    put(place / "shm" / f"torch_{DEAD}_1_1")
    socket_at(place / "tmp" / str(uuid.uuid4())).close()
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os.write(into, repr(look(place)).encode())
        os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    answer = eval(os.read(out, 65536))
    os.close(out)
    assert answer["files"] == []
    assert ["could be looked into" in row["why"] for row in answer["kept"]] == [True, True]


def test_in_a_container_a_shared_folder_is_left_to_the_host(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place / "shm" / f"torch_{DEAD}_1_1")
    made_up = place / "proc"
    (made_up / "self" / "ns").mkdir(parents=True)
    (made_up / "self" / "ns" / "pid").symlink_to("pid:[4026532999]")
    mounts = made_up / "self" / "mounts"
    monkeypatch.setattr(Quiet, "proc", str(made_up))
    mounts.write_text(f"overlay / overlay rw 0 0\ntmpfs {place}/shm tmpfs rw 0 0\n")
    answer = look(place)
    assert answer["files"] == []
    assert answer["kept"] == [{"path": str(place / "shm"), "why": clearing.SHARED}]
    mounts.write_text(f"overlay / overlay rw 0 0\nshm {place}/shm tmpfs rw,size=65536k 0 0\n")
    assert listed(place) == {f"torch_{DEAD}_1_1"}


def test_only_what_is_a_leftover_at_that_moment_is_removed(place: Path) -> None:
    dead = put(place / "shm" / f"torch_{DEAD}_1_1")
    used = put(place / "shm" / f"torch_{DEAD}_1_2")
    other = put(place / "shm" / "precious")
    unnamed = put(place / "shm" / f"torch_{DEAD}_1_3")
    with Hands(place) as hands, used.open():
        answer = hands.do("remove", "token-1", paths=[str(dead), str(used), str(other), "/etc/hostname"])
        results = [row["result"] for row in answer["files"]]
        assert results == ["removed", *["not a leftover (any more)"] * 3]
        assert (dead.exists(), used.exists(), other.exists(), unnamed.exists()) == (False, True, True, True)
        put(dead)
        again = hands.do("remove", "token-1", paths=[str(dead), str(used), str(other), "/etc/hostname"])
        assert again == {**answer, "repeat": True}
        assert dead.exists()
