"""Who has a device open or mapped: by the file's identity, through dead leaders, other users, namespaces."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import holders as holding
from specdash.agent.acts import Acts
from specdash.agent.host import Host
from tests.agent.hands import Hands, root, state_of, until

OPEN = "import sys; files = [open(name) for name in sys.argv[1:]]; print('up', flush=True); sys.stdin.read()"
MAP = (
    "import mmap, os, sys\n"
    "maps = []\n"
    "for name in sys.argv[1:]:\n"
    "    maps.append(mmap.mmap(os.open(name, os.O_RDONLY), 0, prot=mmap.PROT_READ))\n"
    "os.closerange(3, 64)\n"
    "print('up', flush=True)\n"
    "sys.stdin.read()\n"
)
DEAD_LEADER = (
    "import ctypes, sys, threading, time\n"
    "files = [open(name) for name in sys.argv[1:]]\n"
    "threading.Thread(target=lambda: (print('up', flush=True), time.sleep(600))).start()\n"
    "ctypes.CDLL(None).pthread_exit(None)\n"
)
HEIR = (
    "import os, sys, time\n"
    "files = [open(sys.argv[1]) for _ in range(int(sys.argv[2]))]\n"
    "if os.fork() == 0:\n"
    "    print(os.getpid(), flush=True)\n"
    "    time.sleep(600)\n"
    "sys.stdin.read()\n"
)

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program in a session of its own and wait for its first line, kept in ``args``."""
    made: list[subprocess.Popen[str]] = []

    def begin(*argv: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, **options
        )
        made.append(process)
        assert process.stdout is not None
        process.args = process.stdout.readline().strip()
        return process

    yield begin
    for process in made:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def device(place: Path, name: str) -> str:
    return str(place / "dev" / name)


def rows(hands: Hands) -> dict[int, dict[str, Any]]:
    return {row["pid"]: row for row in hands.do("holders")["holders"]}


def test_an_open_card_makes_a_holder_and_a_mapped_context_an_owner(
    hands: Hands, place: Path, start: Start
) -> None:
    monitor = start(
        sys.executable, "-c", OPEN, *(device(place, name) for name in ("nvidia0", "nvidia0", "nvidiactl"))
    )
    worker = start(sys.executable, "-c", MAP, device(place, "nvidia-uvm"), device(place, "nvidia1"))
    start(sys.executable, "-c", OPEN, str(place / "adapter.py"))
    found = rows(hands)
    assert set(found) == {monitor.pid, worker.pid}
    seen = found[monitor.pid]
    assert (seen["kind"], seen["cards"], seen["fds"], seen["maps"]) == ("holder", [0], {"0": 2, "ctl": 1}, [])
    seen = found[worker.pid]
    assert (seen["kind"], seen["cards"], seen["fds"], seen["maps"]) == ("owner", [1], {}, ["1", "uvm"])
    assert seen["protected"] is None


def test_another_name_of_the_same_file_is_the_same_device(hands: Hands, place: Path, start: Start) -> None:
    os.link(device(place, "nvidia1"), place / "innocent")
    holder = start(sys.executable, "-c", OPEN, str(place / "innocent"))
    assert rows(hands)[holder.pid]["cards"] == [1]


def test_a_dead_leader_whose_thread_lives_is_seen(hands: Hands, place: Path, start: Start) -> None:
    process = start(sys.executable, "-c", DEAD_LEADER, device(place, "nvidia0"))
    until(lambda: state_of(process.pid) == "Z")
    row = rows(hands)[process.pid]
    assert (row["state"], row["zombie_leader"], row["cards"]) == ("Z", True, [0])
    assert hands.signal("KILL", process.pid) == {process.pid: "sent"}
    until(lambda: process.pid not in rows(hands))


def test_our_own_agents_are_protected(hands: Hands, place: Path, start: Start) -> None:
    agent = f"import specdash_loader\n{OPEN}".replace("import specdash_loader", "# specdash_loader")
    other = start(sys.executable, "-c", agent, device(place, "nvidia0"))
    parent = open(device(place, "nvidia0"))  # noqa: PTH123, SIM115
    try:
        found = rows(hands)
    finally:
        parent.close()
    assert found[other.pid]["protected"] == "another specdash"
    assert found[os.getpid()]["protected"] == "our own agent"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nvidia-persistenced", "keeps the driver loaded"),
        ("nv-hostengine", "DCGM"),
        ("nv-fabricmanager", "NVSwitch"),
        ("Xorg", "the display"),
        ("nvidia-cuda-mps-control", "echo quit | nvidia-cuda-mps-control"),
        ("vllm", None),
    ],
)
def test_what_others_depend_on_is_protected_by_its_program_or_cut_name(
    hands: Hands, place: Path, start: Start, name: str, says: str | None
) -> None:
    code = f"import ctypes; ctypes.CDLL(None).prctl(15, {name!r}.encode(), 0, 0, 0)\n{OPEN}"
    daemon = start(sys.executable, "-c", code, device(place, "nvidia0"))
    why = rows(hands)[daemon.pid]["protected"]
    assert why == says or (says and says in why)


def test_another_users_holder_is_named_with_its_user(hands: Hands, place: Path, start: Start) -> None:
    if not root():
        pytest.skip("only root can start a process as somebody else")
    fd = os.open(device(place, "nvidia1"), os.O_RDONLY)
    try:
        holder = start("/bin/sh", "-c", "echo up; exec sleep 600", pass_fds=(fd,), user=65534)
    finally:
        os.close(fd)
    row = rows(hands)[holder.pid]
    assert (row["user"], row["uid"], row["cards"]) == ("nobody", 65534, [1])


def test_what_cannot_be_looked_into_is_counted_and_not_called_free(place: Path, start: Start) -> None:
    if not root():
        pytest.skip("only root can become another user")
    start(sys.executable, "-c", OPEN, device(place, "nvidia0"))
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        answer = holding.holders(_acts(FixedHost(place)), {})
        named = [row["user"] for row in answer["closed"]]
        os.write(into, b"%d %d %s" % (len(answer["holders"]), answer["denied"], named[0].encode()))
        os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    found, denied, user = os.read(out, 100).split()
    os.close(out)
    assert int(found) == 0
    assert int(denied) >= 2
    assert user == b"root", "the first of them are named"


def test_a_host_without_devices_has_no_holders() -> None:
    class Bare(Host):
        def device_majors(self) -> dict[int, str]:
            return {}

        def device_paths(self) -> list[str]:
            return []

    answer = holding.holders(_acts(Bare()), {})
    assert answer == {"holders": [], "devices": [], "denied": 0, "closed": [], "unanswered": 0}


class FixedHost(Host):
    """Stand-in devices in a folder; the numbers are looked up once, before anybody becomes another user."""

    def __init__(self, place: Path) -> None:
        self._paths = [device(place, name) for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")]
        self._folder = str(place / "run")

    def device_majors(self) -> dict[int, str]:
        return {}

    def device_paths(self) -> list[str]:
        return self._paths

    def run_folder(self) -> str:
        return self._folder


def _acts(host: Host, owners: tuple[int, ...] = ()) -> Acts:
    return Acts(host, {}, lambda _: None, lambda _: None, lambda: owners)


def test_real_devices_are_told_by_their_numbers(place: Path, start: Start) -> None:
    # /dev/null stands for a card of a driver with its major number: a character device like theirs.
    class Numbered(FixedHost):
        def device_majors(self) -> dict[int, str]:
            return {os.major(os.stat("/dev/null").st_rdev): "nvidia"}  # noqa: PTH116

    holder = start(sys.executable, "-c", OPEN, "/dev/zero", "/dev/zero")
    answer = holding.holders(_acts(Numbered(place)), {})
    [row] = [row for row in answer["holders"] if row["pid"] == holder.pid]
    minor = os.minor(os.stat("/dev/zero").st_rdev)  # noqa: PTH116
    assert row["fds"][str(minor)] == 2
    assert minor in row["cards"]


def test_who_nvml_names_is_an_owner_without_any_mapping(place: Path, start: Start) -> None:
    holder = start(sys.executable, "-c", OPEN, device(place, "nvidia0"))
    [row] = holding.holders(_acts(FixedHost(place), (holder.pid,)), {})["holders"]
    assert row["kind"] == "owner"


@pytest.mark.parametrize(("count", "session"), [(20, False), (1, True)])
def test_the_heir_of_a_dead_owner_is_told_from_a_monitor(
    place: Path, start: Start, count: int, session: bool
) -> None:
    parent = start(sys.executable, "-c", HEIR, device(place, "nvidia0"), str(count))
    heir = int(str(parent.args))
    monitor = start(sys.executable, "-c", OPEN, *[device(place, "nvidia0")] * 3)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    # A fork that has left the session is told by how much it has open, one that has not by its session.
    dead = parent.pid if session else 4_000_000
    answer = holding.holders(_acts(FixedHost(place), (dead,)), {})
    found = {row["pid"]: row for row in answer["holders"]}
    assert (found[heir]["kind"], found[heir].get("heir_of")) == ("holder", [dead])
    assert "heir_of" not in found[monitor.pid]
    assert not holding.holders(_acts(FixedHost(place)), {})["holders"][0].get("heir_of")


def test_who_started_a_holder_is_named_and_who_took_it_in_is_not(place: Path, start: Start) -> None:
    parent = start(sys.executable, "-c", HEIR, device(place, "nvidia0"), "1")
    child = int(str(parent.args))
    host = FixedHost(place)

    def above() -> list[str]:
        rows = {row["pid"]: row for row in holding.holders(_acts(host), {})["holders"]}
        names: list[str] = rows[child]["above"]
        return names

    assert above() == [Path(f"/proc/{parent.pid}/comm").read_text().strip()]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert above() == []


def test_a_container_process_shows_both_its_numbers(hands: Hands, place: Path, start: Start) -> None:
    inner = "import sys, time; f = open(sys.argv[1]); print('up', flush=True); time.sleep(600)"
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try:
        if subprocess.run([*unshare, "true"], capture_output=True, timeout=20).returncode:
            pytest.skip("no right to make a PID namespace here")
    except FileNotFoundError:
        pytest.skip("no unshare(1) on this machine")
    start(*unshare, sys.executable, "-c", inner, device(place, "nvidia1"))
    [row] = rows(hands).values()
    assert (row["nspid"], row["cards"]) == (1, [1])
    assert row["pid"] != 1
    assert hands.signal("KILL", row["pid"]) == {row["pid"]: "sent"}
    until(lambda: not rows(hands))
