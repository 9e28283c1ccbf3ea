"""Everything of a server is found, whatever its children have done to hide, and nobody else."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specdash.agent import family as families
from specdash.agent import procfs
from specdash.agent.acts import Acts
from specdash.agent.host import Host
from tests.agent.hands import Hands, is_dead, pids_of, root, start_of, state_of, until

NAUGHTY = Path(__file__).with_name("naughty.py")
ROLES = {
    *("main", "plain", "stubborn", "setsid", "double", "double-setsid", "renamed", "bare", "stopped"),
    *("parent", "grandchild", "forked"),
}
STUBBORN = ROLES - {"main", "plain", "parent", "grandchild"}
"""Whom SIGTERM does not end."""
SLEEP = "import time; time.sleep(600)"

Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Start something in a session of its own; it and all of its session end with the test."""
    made: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # type: ignore[call-overload]
            argv, stdin=subprocess.DEVNULL, **{"start_new_session": True, **options}
        )
        made.append(process)
        return process  # type: ignore[no-any-return]

    yield start
    for process in made:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def is_whole(told: Path) -> bool:
    """The made-up server has all its children, and each is what it is going to be."""
    pids = pids_of(told) if told.exists() else {}
    if set(pids) < ROLES or state_of(pids["stopped"]) != "T":
        return False
    return Path(f"/proc/{pids['bare']}/cmdline").read_bytes().startswith(b"innocent")


@pytest.fixture
def server(place: Path, begin: Begin) -> Iterator[dict[str, int]]:
    """The made-up server with its naughty children, found running: role -> pid."""
    told = place / "told"
    begin(sys.executable, str(NAUGHTY), str(told), str(place / "dev" / "nvidia1"))
    until(lambda: is_whole(told))
    starts = {pid: start_of(pid) for pid in pids_of(told).values()}
    yield pids_of(told)
    for pid, start in starts.items():
        with contextlib.suppress(OSError):
            if start_of(pid) == start:
                os.kill(pid, signal.SIGKILL)


def members(answer: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    return {row["pid"]: row["how"] for row in answer["members"]}


def test_a_found_server_is_found_whole(hands: Hands, server: dict[str, int], begin: Begin) -> None:
    stranger = begin(sys.executable, "-c", SLEEP)
    answer = hands.family(server["main"])
    found = members(answer)
    # Whoever forked twice and left the session before we came can be told by nothing but what it holds.
    assert set(found) == set(server.values()) - {server["double-setsid"]}
    assert stranger.pid not in found
    assert hands.process.pid not in found
    assert found[server["main"]] == ["group", "root", "session"]
    assert found[server["double"]] == ["group", "session"]
    assert found[server["grandchild"]] == ["group", "session", "tree"]
    [bare] = [row for row in answer["members"] if row["pid"] == server["bare"]]
    assert bare["title"] == f"innocent -c {SLEEP}"
    assert {row["state"] for row in answer["members"] if row["pid"] == server["stopped"]} == {"T"}


def test_nothing_is_left_of_it_and_nobody_else_is_touched(
    hands: Hands, server: dict[str, int], place: Path, begin: Begin
) -> None:
    monitor = begin(sys.executable, "-c", f"f = open({str(place / 'dev' / 'nvidia1')!r}); {SLEEP}")
    stranger = begin(sys.executable, "-c", SLEEP)
    until(lambda: monitor.pid in {row["pid"] for row in hands.do("holders")["holders"]})
    family = [int(str(pid)) for pid in members(hands.family(server["main"]))]
    hands.signal("TERM", *family)
    left = [server[role] for role in STUBBORN - {"double-setsid"}]
    until(lambda: all(is_dead(pid) for pid in set(family) - set(left)))
    assert not any(is_dead(pid) for pid in left)
    hands.signal("KILL", *left)
    until(lambda: all(is_dead(pid) for pid in family))
    # The one that could not be told as a relative still holds the card.
    holders = {row["pid"] for row in hands.do("holders")["holders"]}
    assert holders == {server["double-setsid"], monitor.pid}
    hands.signal("KILL", server["double-setsid"])
    until(lambda: is_dead(server["double-setsid"]))
    assert (monitor.poll(), stranger.poll(), hands.process.poll()) == (None, None, None)


def test_a_dead_leader_that_was_known_still_names_its_session(hands: Hands, server: dict[str, int]) -> None:
    main = {"pid": server["main"], "start": start_of(server["main"])}
    os.kill(server["main"], signal.SIGKILL)
    os.waitpid(server["main"], 0)
    answer = hands.do("family", pids=[main], run=None)
    assert answer["gone"] == [main]
    assert set(members(answer)) == {
        server[role] for role in ("plain", "stubborn", "double", "stopped", "parent", "forked", "grandchild")
    }
    assert answer["doubtful"] == []


def test_a_number_taken_over_by_somebody_else_makes_no_family(hands: Hands, begin: Begin) -> None:
    stranger = begin(sys.executable, "-c", SLEEP)
    target = {"pid": stranger.pid, "start": start_of(stranger.pid) - 1}
    answer = hands.do("family", pids=[target], run=None)
    assert (answer["members"], answer["gone"]) == ([], [target])


WRAPPER = """
import subprocess, sys, time
sleep = 'import time; time.sleep(600)'
servers = [subprocess.Popen([sys.executable, '-c', sleep, name]) for name in sys.argv[2:]]
open(sys.argv[1], 'w').write(str([server.pid for server in servers]))
time.sleep(0 if 'leave' in sys.argv else 600)
"""


TITLED = "[name, '-c', sleep], executable=sys.executable"


def test_a_wrapper_that_shares_the_session_with_others_is_no_relative(
    hands: Hands, begin: Begin, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    wrapper = begin(sys.executable, "-c", WRAPPER, str(told), "server", "monitor")
    until(lambda: told.exists() and told.read_text())
    server, monitor = eval(told.read_text())
    answer = hands.family(server)
    assert set(members(answer)) == {server}
    assert answer["doubtful"] == []
    assert not {wrapper.pid, monitor} & set(members(answer))


def test_who_shares_only_a_dead_wrappers_session_is_doubtful(
    hands: Hands, begin: Begin, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    names = ["sglang::scheduler_TP0", "sglang::detokenizer", "monitor", "leave"]
    code = WRAPPER.replace("[sys.executable, '-c', sleep, name]", TITLED)
    begin(sys.executable, "-c", code, str(told), *names).wait()
    rank, detokenizer, monitor, other = eval(told.read_text())
    answer = hands.family(rank)
    assert members(answer) == {rank: ["root"], detokenizer: ["group", "session", "title"]}
    assert [row["pid"] for row in answer["doubtful"]] == [monitor, other]
    assert answer["doubtful"][0]["how"] == ["group", "session"]


def test_the_mark_of_our_launch_finds_what_has_left_the_tree(hands: Hands, begin: Begin) -> None:
    env = {**os.environ, "SPECDASH_RUN": "run-token-1"}
    ours = begin(sys.executable, "-c", SLEEP, env=env)
    other = begin(sys.executable, "-c", SLEEP, env={**env, "SPECDASH_RUN": "run-token-12"})
    until(lambda: b"SPECDASH_RUN" in Path(f"/proc/{other.pid}/environ").read_bytes())
    answer = hands.do("family", pids=[], run="run-token-1")
    assert members(answer) == {ours.pid: ["run"]} or members(answer) == {
        ours.pid: ["group", "run", "session"]
    }


def test_our_agent_is_no_relative_even_of_its_own_parent(hands: Hands) -> None:
    answer = hands.family(os.getpid())
    assert hands.process.pid not in members(answer)
    assert os.getpid() not in members(answer)
    assert [row["why"] for row in answer["barred"]] == ["it is our own agent, or above it"]


def test_a_child_that_was_not_reaped_is_named_with_its_parent(hands: Hands, begin: Begin) -> None:
    code = f"import os; os.fork() or os._exit(0); {SLEEP}"
    parent = begin(sys.executable, "-c", code)
    until(lambda: len(hands.family(parent.pid)["members"]) == 2)
    until(lambda: hands.family(parent.pid)["members"][1]["state"] == "Z")
    child = hands.family(parent.pid)["members"][1]
    assert child["zombie_parent"]["pid"] == parent.pid


def test_another_users_children_are_found_and_named(hands: Hands, begin: Begin) -> None:
    if not root():
        pytest.skip("only root can start a process as somebody else")
    parent = begin("/bin/sh", "-c", "sleep 600 & sleep 601", user=65534)
    until(lambda: len(hands.family(parent.pid)["members"]) == 3)
    assert {row["user"] for row in hands.family(parent.pid)["members"]} == {"nobody"}


@pytest.mark.parametrize(
    ("group", "oldest", "taken"),
    [
        ("/user.slice/user-0.slice/user@0.service/tmux-spawn-5e0f.scope", "server", False),
        ("/system.slice/vllm.service", "server", True),
        ("/docker/" + "0123456789ab" * 5 + "cdef", "server", True),
        ("/system.slice/vllm.service", "stranger", False),
        ("/user.slice/user-0.slice/session-3.scope", "server", False),
        # An old kernel puts every login of every user into one.
        ("/user.slice", "server", False),
        ("/system.slice", "server", False),
        ("/", "server", False),
    ],
)
def test_a_control_group_counts_only_when_it_is_the_servers_own(
    begin: Begin, place: Path, monkeypatch: pytest.MonkeyPatch, group: str, oldest: str, taken: bool
) -> None:
    names = ["server", "stranger"] if oldest == "server" else ["stranger", "server"]
    made: dict[str, int] = {}
    for name in names:
        made[name] = begin(sys.executable, "-c", SLEEP).pid
        # Start times have the kernel's clock ticks: the next one must be a later one.
        until(lambda name=name: start_of(made[name]) < _ticks())  # type: ignore[misc]
    monkeypatch.setattr(families, "cgroup_of", lambda _, pid: group if pid in made.values() else "/other")
    acts = Acts(Host(), {}, lambda _: None, lambda _: None)
    request = {"r": "family", "pids": [{"pid": made["server"], "start": start_of(made["server"])}]}
    found = members(families.family(acts, request))
    assert (made["stranger"] in found) is taken


def test_a_control_group_with_another_server_in_it_is_neither_ones(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit starts both, or one container."""
    server = begin("vllm serve", "600", executable="/bin/sleep").pid
    until(lambda: start_of(server) < _ticks())
    other = begin("vllm serve", "601", executable="/bin/sleep").pid
    alone = begin(sys.executable, "-c", SLEEP).pid
    unit = {server, alone}
    monkeypatch.setattr(
        families, "cgroup_of", lambda _, pid: "/system.slice/both.service" if pid in unit else "/other"
    )
    acts = Acts(Host(), {}, lambda _: None, lambda _: None)
    request = {"pids": [{"pid": server, "start": start_of(server)}]}
    assert set(members(families.family(acts, request))) == {server, alone}
    unit.add(other)
    assert set(members(families.family(acts, request))) == {server}


def test_a_control_group_with_our_own_login_in_it_is_not_the_servers(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without logind whatever a login starts lies in ``ssh.service``, and sshd itself may be younger."""
    server, stranger = (begin(sys.executable, "-c", SLEEP).pid for _ in range(2))
    mine = {server, stranger, os.getpid()}
    group = "/system.slice/ssh.service"
    monkeypatch.setattr(families, "cgroup_of", lambda _, pid: group if pid in mine else "/other")
    monkeypatch.setattr(
        families, "min", lambda pids, key: server if server in pids else min(pids), raising=False
    )
    acts = Acts(Host(), {}, lambda _: None, lambda _: None)
    found = members(families.family(acts, {"pids": [{"pid": server, "start": start_of(server)}]}))
    assert stranger not in found


TWO_SERVERS = r"""
import os
for number in range(2):
    if os.fork() == 0:
        os.setpgid(0, 0)
        core = os.fork()
        if core == 0:
            worker = os.fork()
            if worker == 0:
                os.execv("/bin/sleep", ["python3 -c from multiprocessing.spawn import spawn_main", "600"])
            os.write(1, b"%d %d %d\n" % (os.getppid(), os.getpid(), worker))
            os.execv("/bin/sleep", ["VLLM::EngineCore", "600"])
        os.execv("/bin/sleep", ["vllm serve", "600"])
"""


def test_two_servers_of_one_login_that_is_over_are_two(hands: Hands, begin: Begin) -> None:
    """Started from one shell with nohup, the shell gone: they share a session whose leader is dead."""
    shell = begin(sys.executable, "-c", TWO_SERVERS, stdout=subprocess.PIPE)
    assert shell.stdout is not None
    servers = [list(map(int, shell.stdout.readline().split())) for _ in range(2)]
    shell.wait()
    pids = [pid for server in servers for pid in server]
    try:
        until(lambda: all(Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in pids))
        for mine, other in (servers, servers[::-1]):
            assert set(members(hands.family(mine[0]))) == set(mine)
            assert not set(members(hands.family(mine[0]))) & set(other)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        shell.stdout.close()


BESIDE = r"""
import os, sys
way, titles = sys.argv[1], sys.argv[2:]

def child(title):
    if pid := os.fork():
        return pid
    os.execv("/bin/sleep", [title, "600"])

for port, name in enumerate("AB", 8001):
    if (way == "exec" and name == "B") or os.fork() == 0:
        if way == "jobs":
            os.setpgid(0, 0)
        out = os.open("both" if way == "one log" else name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        told = os.dup(1)
        os.dup2(out, 1)
        pids = [os.getpid(), *map(child, titles[1:])]
        os.write(told, " ".join(map(str, [name, *pids])).encode() + b"\n")
        os.close(told)
        os.execv("/bin/sleep", ["%s --port %d" % (titles[0], port), "600"])
"""
OFFSHOOT = "python3 -c from multiprocessing.resource_tracker import main"
VLLM = ("python3 vllm serve", "VLLM::EngineCore", "VLLM::Worker", OFFSHOOT)
SGLANG = ("python3 -m sglang.launch_server", "sglang::scheduler_TP0", "sglang::detokenizer", OFFSHOOT)


@pytest.fixture(params=[VLLM, SGLANG], ids=["vllm", "sglang"])
def beside(
    request: pytest.FixtureRequest, begin: Begin, tmp_path: Path
) -> Iterator[Callable[[str], dict[str, list[int]]]]:
    """Two servers that one shell or script has started, which is over: main process, workers, an offshoot."""
    pids: list[int] = []

    def start(way: str) -> dict[str, list[int]]:
        code = [sys.executable, "-c", BESIDE, way, *request.param]
        shell = begin(*code, stdout=subprocess.PIPE, cwd=tmp_path)
        assert shell.stdout is not None
        told = [shell.stdout.readline().decode().split() for _ in range(2)]
        if way != "exec":
            shell.wait()
        shell.stdout.close()
        servers = {name: list(map(int, numbers)) for name, *numbers in told}
        pids.extend(pid for server in servers.values() for pid in server)
        until(lambda: all(Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in pids))
        return servers

    yield start
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill(pid: int) -> None:
    """End it; init buries it in its own time."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_dead(pid))


def doubtful(answer: dict[str, list[dict[str, object]]]) -> set[object]:
    return {row["pid"] for row in answer["doubtful"]}


Beside = Callable[[str], dict[str, list[int]]]
WAYS = pytest.mark.parametrize("way", ["jobs", "script", "one log"])


@WAYS
@pytest.mark.parametrize(("dead", "living"), ["AB", "BA"])
def test_a_living_server_is_not_asked_to_take_a_dead_ones_leavings_along(
    hands: Hands, beside: Beside, way: str, dead: str, living: str
) -> None:
    servers = beside(way)
    kill(servers[dead][0])
    answer = hands.family(servers[living][0])
    assert set(members(answer)) == set(servers[living])
    assert doubtful(answer) == set(servers[dead][1:])
    # Nor when its main process has obeyed and the rest of the plan is carried out.
    seeds = [{"pid": pid, "start": start_of(pid)} for pid in servers[living]]
    kill(servers[living][0])
    answer = hands.do("family", pids=seeds, run=None, sure=True)
    assert set(members(answer)) - {servers[living][0]} == set(servers[living][1:])


@WAYS
@pytest.mark.parametrize(("dead", "living"), ["AB", "BA"])
def test_what_a_dead_server_has_left_is_found_without_the_living_one_beside_it(
    hands: Hands, beside: Beside, way: str, dead: str, living: str
) -> None:
    servers = beside(way)
    kill(servers[dead][0])
    _, *left = servers[dead]
    answer = hands.family(left[0])
    if way == "one log":  # they may be the living one's as well
        assert set(members(answer)) == {left[0]}
        assert doubtful(answer) == set(left[1:])
    else:
        assert set(members(answer)) == set(left)
        assert doubtful(answer) == set()


def test_a_server_that_was_the_script_of_another_is_found_without_it(hands: Hands, beside: Beside) -> None:
    """``vllm serve A & exec vllm serve B``: A is a child of B, in its session."""
    servers = beside("exec")
    for mine in servers.values():
        assert set(members(hands.family(mine[0]))) == set(mine)
    kill(servers["A"][0])
    assert set(members(hands.family(servers["B"][0]))) - {servers["A"][0]} == set(servers["B"])


@pytest.mark.parametrize("way", ["jobs", "script"])
def test_of_two_dead_servers_only_the_one_that_is_meant_is_found(
    hands: Hands, beside: Beside, way: str
) -> None:
    servers = beside(way)
    for main, *_ in servers.values():
        kill(main)
    answer = hands.family(servers["A"][1])
    assert set(members(answer)) == set(servers["A"][1:])
    assert doubtful(answer) == set(servers["B"][1:])


def _ticks() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def test_who_is_never_touched_or_went_meanwhile_is_not_called_closed_to_us(
    place: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut, going = begin(sys.executable, "-c", SLEEP), begin(sys.executable, "-c", SLEEP)
    read = procfs.read

    def refusing(path: str) -> bytes:
        if path == f"/proc/{going.pid}/environ":
            going.kill()
            going.wait()
        if path in [f"/proc/{pid}/environ" for pid in (1, shut.pid, going.pid)]:
            raise PermissionError(13, "Permission denied", path)
        return read(path)

    monkeypatch.setattr(procfs, "read", refusing)
    acts = Acts(Host(), {}, lambda _: None, lambda _: None)
    answer = families.family(acts, {"pids": [], "run": "run-token-2"})
    refused = [row["pid"] for row in answer["closed"]]
    assert shut.pid in refused
    assert not {1, going.pid} & set(refused)
    assert answer["denied"] == len(refused)
