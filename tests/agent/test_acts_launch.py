"""What is launched outlives us, is started once, and its end is known afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specdash.sim.adapter import descendants
from tests.agent.hands import BOOT, Hands, is_dead, pids_of, root, start_of, state_of, until
from tests.agent.test_acts_family import NAUGHTY, is_whole

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def log(place: Path) -> Iterator[Path]:
    """A server's log; with the test everything ends that the made-up host has a record of."""
    yield place / "server.log"
    for path in (place / "run").glob("*/supervisor"):
        with contextlib.suppress(OSError, ValueError):
            noted = json.loads(path.read_text())
            if start_of(noted["pid"]) == noted["start"]:
                # It adopts whatever is orphaned, so it goes last.
                while below := descendants("/proc", noted["pid"]):
                    for pid in below:
                        os.kill(pid, signal.SIGKILL)


def launch(
    hands: Hands, log: Path, argv: list[str], token: str | None = None, **fields: Any
) -> dict[str, Any]:
    return hands.do("launch", token, argv=argv, env={}, log=str(log), **fields)


def test_a_launch_is_as_it_was_asked_for(hands: Hands, log: Path, tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['COLOUR'], os.getsid(0) == os.getpid(), flush=True)"
    code += "; print('to stderr', file=sys.stderr, flush=True); import time; time.sleep(600)"
    log.write_text("before\n")
    made = hands.do(
        "launch",
        argv=[sys.executable, "-c", code],
        env={"COLOUR": "a 'b' $c"},
        cwd=str(tmp_path),
        log=str(log),
    )
    assert (made["start"], made["boot"]) == (start_of(made["pid"]), BOOT)
    until(lambda: "to stderr" in log.read_text())
    assert log.read_text() == f"before\n{tmp_path} a 'b' $c True\nto stderr\n"
    assert os.readlink(f"/proc/{made['pid']}/fd/0") == "/dev/null"  # noqa: PTH115
    fds = {os.readlink(f"/proc/{made['pid']}/fd/{fd}") for fd in os.listdir(f"/proc/{made['pid']}/fd")}  # noqa: PTH115, PTH208
    assert fds == {"/dev/null", str(log)}
    told = hands.do("launched", token=made["token"])
    assert (told["pid"], told["alive"], told["exit"], told["error"]) == (made["pid"], True, None, None)


def test_only_what_was_given_is_in_the_environment_when_nothing_is_inherited(hands: Hands, log: Path) -> None:
    made = hands.do("launch", argv=SLEEP, env={"A": "1"}, inherit=False, log=str(log))
    environment = Path(f"/proc/{made['pid']}/environ").read_bytes().split(b"\0")
    assert sorted(environment) == [b"", b"A=1", b"SPECDASH_RUN=" + made["token"].encode()]


def test_what_is_started_hears_ctrl_c_although_we_run_in_a_shells_background(place: Path, log: Path) -> None:
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        hands = Hands(place)
    finally:
        signal.signal(signal.SIGINT, usual)
    with hands:
        made = launch(hands, log, ["sleep", "600"])
    status = Path(f"/proc/{made['pid']}/status").read_text()
    ignored = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn"))
    assert not ignored & 1 << signal.SIGINT - 1


def test_four_simultaneous_requests_with_one_token_make_one_start(place: Path, log: Path) -> None:
    code = "print('began', flush=True); import time; time.sleep(600)"
    answers: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        agents = [stack.enter_context(Hands(place)) for _ in range(4)]
        gate = threading.Barrier(4)

        def press(hands: Hands) -> None:
            gate.wait(120)
            answers.append(launch(hands, log, [sys.executable, "-c", code], "pressed-4-times"))

        threads = [threading.Thread(target=press, args=(hands,)) for hands in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert len(answers) == 4
    assert len({answer["pid"] for answer in answers}) == 1
    assert sorted(answer.get("repeat", False) for answer in answers) == [False, True, True, True]
    until(lambda: log.read_text())
    assert log.read_text() == "began\n"


@pytest.mark.parametrize(
    ("end", "status"), [("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)]
)
def test_the_exit_status_is_known_after_our_agents_death(
    place: Path, log: Path, tmp_path: Path, end: str, status: int
) -> None:
    go, before = tmp_path / "go", time.time()
    code = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n{end}"
    with Hands(place) as hands:
        made = launch(hands, log, [sys.executable, "-c", code])
        supervisor = hands.do("launched", token=made["token"])["supervisor"]
        # In a session of its own, and deaf to the end of a terminal: the link's end is not its end.
        assert os.getsid(supervisor["pid"]) == supervisor["pid"]
        os.kill(supervisor["pid"], signal.SIGHUP)
    assert hands.process.returncode == -signal.SIGKILL
    assert not is_dead(made["pid"])
    go.touch()
    until(lambda: is_dead(made["pid"]))
    with Hands(place) as later:
        until(lambda: later.do("launched", token=made["token"])["exit"] is not None)
        told = later.do("launched", token=made["token"])
        assert (told["exit"], told["alive"], told["pid"]) == (status, False, made["pid"])
        assert before - 1 <= told["ended"] <= time.time() + 1
    # With nothing left to watch over the supervisor is gone, too.
    until(lambda: is_dead(supervisor["pid"]))


def test_what_a_launched_server_forks_off_stays_below_its_supervisor(
    hands: Hands, log: Path, place: Path
) -> None:
    told = place / "told"
    argv = [sys.executable, str(NAUGHTY), str(told), str(place / "dev" / "nvidia0")]
    made = launch(hands, log, argv)
    until(lambda: is_whole(told))
    pids = pids_of(told)
    assert {row["pid"] for row in hands.family(pids["main"])["members"]} == set(pids.values())
    main = {"pid": made["pid"], "start": made["start"]}
    os.kill(made["pid"], signal.SIGKILL)
    until(lambda: hands.do("launched", token=made["token"])["exit"] == -9)
    # By then the orphans' parent is the supervisor, however they have gone into hiding.
    answer = hands.do("family", pids=[main], run=made["token"])
    left = {row["pid"]: row["how"] for row in answer["members"]}
    assert set(left) == set(pids.values()) - {made["pid"]}
    assert all("tree" in how for pid, how in left.items())
    supervisor = hands.do("launched", token=made["token"])["supervisor"]["pid"]
    assert supervisor not in left
    assert hands.signal("KILL", supervisor) == {supervisor: "denied"}
    hands.signal("KILL", *left)
    until(lambda: all(state_of(pid) == "X" for pid in left))
    until(lambda: is_dead(supervisor))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"argv": ["/nowhere/vllm", "serve"]}, "/nowhere/vllm"),
        ({"argv": SLEEP, "cwd": "/nowhere"}, "No such file or directory: /nowhere"),
        ({"argv": SLEEP, "log": "/nowhere/server.log"}, "No such file or directory: /nowhere/server.log"),
        ({"argv": SLEEP, "user": "nobody-of-that-name"}, "there is no user nobody-of-that-name"),
        ({"argv": []}, "a command and a log are needed"),
        ({"argv": ["a\0b"]}, "texts"),
        ({"argv": SLEEP, "how": "magic"}, "how is process, systemd, docker or tmux"),
    ],
)
def test_what_cannot_be_started_says_why(hands: Hands, log: Path, fields: dict[str, Any], says: str) -> None:
    asked = {"env": {}, "log": str(log), **fields}
    assert says in hands.refusal("launch", "token-1", **asked)
    assert says in hands.refusal("launch", "token-1", **asked)


def test_another_user_is_taken_with_its_groups_and_home(hands: Hands, place: Path) -> None:
    if not root():
        pytest.skip("only root can start something as somebody else")
    log = Path("/tmp") / f"specdash-test-{os.getpid()}.log"  # a folder that nobody may write into
    code = "echo $(id -un) $HOME; exec sleep 600"
    try:
        made = hands.do("launch", argv=["/bin/sh", "-c", code], env={}, log=str(log), user="nobody")
        until(lambda: log.read_text())
        assert log.read_text() == f"nobody {pwd.getpwnam('nobody').pw_dir}\n"
        assert log.stat().st_uid == pwd.getpwnam("nobody").pw_uid
        hands.signal("KILL", made["pid"])
    finally:
        log.unlink(missing_ok=True)


def test_secrets_are_on_no_disk(hands: Hands, log: Path, place: Path) -> None:
    argv = [*SLEEP, "--api-key", "sesame-1"]
    hands.do("launch", argv=argv, env={"HF_TOKEN": "sesame-2"}, log=str(log))
    for path in (place / "run").rglob("*"):
        if path.is_file():
            assert "sesame" not in path.read_text(), path
        assert path.stat().st_mode & 0o077 == 0 or path.is_file()


def test_a_lost_answer_is_given_again_by_the_next_agent(place: Path, log: Path) -> None:
    with Hands(place) as hands:
        made = launch(hands, log, SLEEP, "lost-answer")
    with Hands(place) as later:
        again = launch(later, log, SLEEP, "lost-answer")
    assert again == {**made, "repeat": True}


def test_a_launch_whose_agent_died_before_answering_is_found_by_its_record(place: Path, log: Path) -> None:
    with Hands(place) as hands:
        made = launch(hands, log, SLEEP, "died-early")
    (place / "run" / "died-early" / "answer").unlink()
    with Hands(place) as later:
        again = launch(later, log, SLEEP, "died-early")
        assert again == {**made, "repeat": True}
        assert later.do("launched", token="died-early")["alive"]


def test_a_token_nobody_used_is_not_found(hands: Hands) -> None:
    assert hands.do("launched", token="never-used") == {"found": False}


# ------------------------------------------------------------------ commands with a limit


def test_a_command_gives_its_status_and_the_end_of_its_output(hands: Hands) -> None:
    code = "import sys; print('x' * 200000); print('end', file=sys.stderr); sys.exit(7)"
    done = hands.do("run", argv=[sys.executable, "-c", code], cwd="/", env={}, limit=60)
    assert (done["exit"], done["timed_out"], done["truncated"]) == (7, False, True)
    assert 64 * 1024 - 8 <= len(done["output"]) <= 64 * 1024
    assert "end" in done["output"]


def test_a_command_that_takes_too_long_is_ended_with_all_it_has_started(hands: Hands, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.fork()\n"
        f"    open({str(told)!r}, 'a').write('%d ' % os.getpid())\n"
        "else:\n"
        "    print('under way', flush=True)\n"
        "time.sleep(600)\n"
    )
    done = hands.do("run", argv=[sys.executable, "-c", code], cwd="/", env={}, limit=10)
    assert (done["exit"], done["timed_out"], done["output"]) == (-9, True, "under way\n")
    assert [is_dead(int(pid)) for pid in told.read_text().split()] == [True, True]


def test_a_command_goes_on_without_us_and_is_not_done_twice(place: Path, tmp_path: Path) -> None:
    go, count = tmp_path / "go", tmp_path / "count"
    code = (
        "import os, time\n"
        f"open({str(count)!r}, 'a').write('.')\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "print('done')\n"
    )
    asked = {"argv": [sys.executable, "-c", code], "cwd": "/", "env": {}, "limit": 60}
    with Hands(place) as hands:
        hands.send("run", "long-command", **asked)
        until(count.exists)
    go.touch()
    with Hands(place) as later:
        done = later.do("run", "long-command", **asked)
    assert (done["exit"], done["output"], done["repeat"]) == (0, "done\n", True)
    assert count.read_text() == "."


def test_a_command_may_take_as_long_as_a_runbook_may_allow_it(hands: Hands) -> None:
    assert hands.do("run", argv=["true"], limit=3600.0)["exit"] == 0
    assert "at most 3600 s" in hands.refusal("run", argv=["true"], limit=3601.0)


# ------------------------------------------------------------------ managers, by stand-ins


def stand_in(folder: Path, name: str, code: str) -> None:
    """A program that plays a manager which does not run on this machine; it notes how it was called."""
    script = folder / name
    folder.mkdir(exist_ok=True)
    script.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"open({str(folder / 'calls')!r}, 'a').write(json.dumps([{name!r}, *sys.argv[1:]]) + '\\n')\n{code}\n"
    )
    script.chmod(0o755)


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def with_path(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_systemd_gets_a_unit_of_its_own_and_the_environment_by_a_private_file(
    place: Path, log: Path, tmp_path: Path
) -> None:
    """With stand-ins for systemd-run and systemctl."""
    tools = tmp_path / "tools"
    keep = (
        "path = [a for a in sys.argv if 'EnvironmentFile' in a][0].split('=', 2)[2]\n"
        "assert os.stat(path).st_mode & 0o77 == 0\n"
        f"open({str(tools / 'environment')!r}, 'w').write(open(path).read())\n"
    )
    stand_in(tools, "systemd-run", keep)
    stand_in(tools, "systemctl", f"print({os.getpid()})")
    with Hands(place, env=with_path(tools)) as hands:
        made = hands.do(
            "launch",
            "0123456789",
            argv=["vllm", "serve", "$HOME"],
            env={"KEY": 'a"b$c\\d'},
            log=str(log),
            how="systemd",
            name="main server",
        )
    assert (made["pid"], made["start"], made["how"]) == (os.getpid(), start_of(os.getpid()), "systemd")
    assert made["unit"] == "specdash-main-server-01234567.service"
    call = calls(tools)[0]
    assert call[0] == "systemd-run"
    assert f"--unit={made['unit']}" in call
    assert f"--property=StandardOutput=append:{log}" in call
    assert call[call.index("--") :] == ["--", "vllm", "serve", "$$HOME"]
    assert 'KEY="a\\"b\\$c\\\\d"\n' in (tools / "environment").read_text()
    assert not list((place / "run").rglob("environment"))


def test_a_unit_that_exists_is_started_by_name(place: Path, tmp_path: Path) -> None:
    """With a stand-in for systemctl."""
    tools = tmp_path / "tools"
    stand_in(tools, "systemctl", f"print({os.getpid()})")
    with Hands(place, env=with_path(tools)) as hands:
        made = hands.do("launch", argv=[], env={}, how="systemd", name="vllm.service")
    assert made["unit"] == "vllm.service"
    assert calls(tools)[0][-3:] == ["start", "--", "vllm.service"]


def test_a_container_is_started_by_name_and_its_first_process_told(place: Path, tmp_path: Path) -> None:
    """With a stand-in for docker."""
    tools = tmp_path / "tools"
    stand_in(tools, "docker", f"if 'inspect' in sys.argv: print({os.getpid()})")
    with Hands(place, env=with_path(tools)) as hands:
        made = hands.do("launch", argv=[], env={}, how="docker", name="sglang")
    assert made["pid"] == os.getpid()
    assert calls(tools)[0] == ["docker", "start", "--", "sglang"]


def test_a_managers_own_words_are_the_reason(place: Path, tmp_path: Path) -> None:
    """With a stand-in for docker."""
    tools = tmp_path / "tools"
    stand_in(tools, "docker", "sys.exit('Error: No such container: sglang')")
    with Hands(place, env=with_path(tools)) as hands:
        why = hands.refusal("launch", argv=[], env={}, how="docker", name="sglang")
    assert why == "docker: Error: No such container: sglang"


def test_in_tmux_one_can_look_on(place: Path, log: Path, tmp_path: Path) -> None:
    import shutil
    import subprocess

    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine")
    env = {"TMUX_TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    code = "print('loading', flush=True); import time; time.sleep(600)"
    log.write_text("earlier run\n")
    with Hands(place, env=env) as hands:
        made = launch(hands, log, [sys.executable, "-c", code], how="tmux", name="night")
        try:
            assert not list((place / "run").rglob("order"))

            def pane() -> str:
                argv = ["tmux", "capture-pane", "-p", "-t", "night"]
                return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout

            until(lambda: "loading" in pane())
            assert "earlier run" not in pane()
            until(lambda: log.read_text() == "earlier run\nloading\n")
            subprocess.run(["tmux", "send-keys", "-t", "night", "C-c"], env=env, check=True)
            until(lambda: hands.do("launched", token=made["token"])["exit"] is not None)
            # Ctrl-C in the window is handed on to the server.
            assert hands.do("launched", token=made["token"])["exit"] in (1, -2, 130)
        finally:
            subprocess.run(["tmux", "kill-server"], env=env, check=False)
