from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from specdash.agent.host import Host
from specdash.agent.main import Agent
from specdash.monitor.frames import Beat, Gpus, Hello, Http, Log, Machine, Note, Pong, Processes, Reply
from tests.agent.driver import RunningAgent, complaints
from tests.nvmlstub.stub import NvmlStub


def test_one_whole_life_under_every_python(
    python: str, stub: NvmlStub, pynvml_folder: Path, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_bytes("Loading ███ 3/64\n".encode() + b"bad \xff\n")
    with RunningAgent(python, env=stub.env(), path=pynvml_folder) as agent:
        hello = agent.wait(Hello)
        assert (hello.proto, hello.specdash, hello.pid) == (1, "9.9", agent.process.pid)
        assert hello.verbs == ("look", "act")
        assert hello.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        agent.ask("ping", n=7)
        assert agent.wait(Pong).n == 7
        agent.ask("watch", match=["pytest"], env=["^PATH$"], interval=0.2)
        frame = agent.wait(Processes, lambda frame: os.getpid() in [process.pid for process in frame.list])
        (me,) = [process for process in frame.list if process.pid == os.getpid()]
        assert (me.cwd, me.env) == (str(Path.cwd()), {"PATH": os.environ["PATH"]})
        agent.ask("tail", path=str(log), backlog=1 << 20)
        assert agent.wait(Log).raw == log.read_bytes()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            calls = [{"path": "connect", "every": 0.2, "limit": 60.0}]
            agent.ask("poll", server="1:2", host="127.0.0.1", port=port, calls=calls)
            assert agent.wait(Http).error is None
        assert agent.wait(Http, lambda answer: answer.error).error == "refused"
        cards = agent.wait(Gpus, lambda frame: len(frame.cards) == 8).cards
        assert [card.total_mib for card in cards] == [143771] * 8
        first = agent.wait(Beat).n
        assert agent.wait(Beat).n == first + 1
        machine = next(frame for frame in agent.said if isinstance(frame, Machine))
        assert 0 < (machine.ram_used_mib or 0) < (machine.ram_total_mib or 0)
        assert {disk.path for disk in machine.disks} >= {"/"}
        assert complaints(agent) == []
        assert agent.end() == 0
        assert agent.stderr() == ""


def test_beats_come_with_real_time_and_carry_the_hosts_clock(tmp_path: Path) -> None:
    adapter, began = tmp_path / "adapter.py", time.monotonic()
    adapter.write_text(
        "def make(Host):\n"
        "    class Made(Host):\n"
        "        simulated = True\n"
        "        def now(self):\n"
        f"            return 1e9 + 60 * (self.monotonic() - {began!r})\n"
        "        def hostname(self):\n"
        "            return 'gpubox'\n"
        "    return Made()\n"
    )
    with RunningAgent(env={"SPECDASH_HOST_ADAPTER": str(adapter)}) as agent:
        hello = agent.wait(Hello)
        assert (hello.host, hello.simulated) == ("gpubox", True)
        last = agent.wait(Beat, lambda beat: beat.n == 4)
        passed = time.monotonic() - began
        assert 2 <= (last.at - 1e9) / 60 <= passed, "a second between two beats is a minute there"


def test_watch_only_has_no_acting_verbs_and_asks_for_no_token() -> None:
    with RunningAgent(options={"watch": True}) as agent:
        assert agent.wait(Hello).verbs == ("look",)
        agent.ask(
            "token", id="a", server="k", host="127.0.0.1", port=1, path="/v1/completions", body="{}", limit=1
        )
        reply = agent.wait(Reply)
        assert (reply.id, reply.ok) == ("a", False)
        assert "watch only" in (reply.error or "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"garbage\n", "not JSON"),
        (b"\xff\xfe\n", "not JSON"),
        (b"[1,2]\n", 'an object with an "r"'),
        (b'{"r":"dance"}\n', "unknown request 'dance'"),
        (b'{"r":"tail"}\n', "tail"),
        (b'{"r":"tail","path":7}\n', "tail"),
        (b'{"r":"ack","path":"/x","offset":"many"}\n', "ack"),
        (b'{"r":"watch","match":["("],"env":[]}\n', "no regular expression"),
        (b'{"r":"poll","server":"k","host":"127.0.0.1","port":1,"calls":[{"limit":1}]}\n', "poll"),
        (b"[" * 100_000 + b"\n", "bad request"),
        (b"x" * 3_000_000 + b"\n", "longer than 1048576 bytes"),
    ],
    ids=lambda value: value[:24].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_a_bad_request_is_told_of_and_does_no_harm(line: bytes, says: str) -> None:
    with RunningAgent() as agent:
        agent.write(line)
        agent.wait(Note, lambda note: says in note.text)
        agent.ask("ping", n=1)
        agent.wait(Pong)


def test_requests_may_arrive_in_pieces() -> None:
    with RunningAgent() as agent:
        agent.write(b'{"r":"pi')
        agent.wait(Beat)
        agent.write(b'ng","n":3}\n{"r":"ping","n":4}\n')
        assert [agent.wait(Pong).n, agent.wait(Pong).n] == [3, 4]


def test_what_a_library_prints_becomes_a_note_and_breaks_no_frame(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(
        "import os, sys\nprint('{\"t\":\"beat\"}')\nsys.stdout.flush()\nos.write(2, b'a warning\\n')\n"
        "raise ImportError('made up')\n"
    )
    with RunningAgent(path=tmp_path) as agent:
        texts = {agent.wait(Note, lambda note: "printed" in note.text).text for _ in range(2)}
        assert texts == {'printed on the host: {"t":"beat"}', "printed on the host: a warning"}
        assert "made up" in (agent.wait(Gpus).error or "")


def test_ends_when_nobody_reads() -> None:
    requests_out, _requests_in = os.pipe()
    frames_out, frames_in = os.pipe()
    agent = Agent(JumpingHost(), requests_out, frames_in, {})
    os.close(frames_out)
    agent.serve()
    agent.close()


class JumpingHost(Host):
    """Real time, plus what the test adds."""

    ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def nvml(self) -> object:
        raise ImportError("none here")


@pytest.mark.parametrize(("silence", "ends"), [(30.0, False), (61.0, True)])
def test_ends_after_a_minute_without_any_request(silence: float, ends: bool) -> None:
    requests_out, requests_in = os.pipe()
    frames_out, frames_in = os.pipe()
    host = JumpingHost()
    agent = Agent(host, requests_out, frames_in, {})
    thread = threading.Thread(target=agent.serve, daemon=True)
    thread.start()
    _read_until(frames_out, "hello")
    os.write(requests_in, b'{"r":"ping","n":1}\n')
    _read_until(frames_out, "pong")
    host.ahead = silence
    if ends:
        thread.join(60)
        assert not thread.is_alive()
    else:
        _read_until(frames_out, "beat")
        os.write(requests_in, b'{"r":"ping","n":2}\n')
        _read_until(frames_out, "pong")
        assert thread.is_alive()
        os.close(requests_in)
        thread.join(60)
    agent.close()


def _read_until(fd: int, kind: str) -> None:
    text = b""
    while f'"t":"{kind}"'.encode() not in text:
        more = os.read(fd, 65536)
        assert more, f"the agent ended before it said {kind}"
        text += more
    assert json.loads(text.splitlines()[0])


def test_a_full_pipe_does_not_keep_the_end_of_stdin_from_being_noticed() -> None:
    requests_out, requests_in = os.pipe()
    frames_out, frames_in = os.pipe()
    agent = Agent(JumpingHost(), requests_out, frames_in, {})
    thread = threading.Thread(target=agent.serve, daemon=True)
    thread.start()
    for n in range(4000):  # 120 KB of pongs: more than the pipe holds
        os.write(requests_in, b'{"r":"ping","n":%d}\n' % n)
    os.close(requests_in)
    thread.join(60)
    assert not thread.is_alive()
    agent.close()
    os.close(frames_out)


def test_samples_overtake_a_flood_of_log_bytes_and_credit_keeps_it_flowing(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    content = b"".join(b"%07d Decode batch, gen throughput (token/s): 3260.11\n" % n for n in range(100_000))
    log.write_bytes(content)
    got = b""
    with RunningAgent() as agent:
        agent.wait(Hello)
        agent.ask("tail", path=str(log), backlog=1 << 30)
        while len(got) < len(content):
            frame = agent.wait(Log)
            assert frame.offset == len(got)
            got += frame.raw
            if len(got) < len(content):
                agent.ask("ping", n=len(got))
            agent.ask("ack", path=str(log), offset=len(got))
        assert got == content
        # Each ping was answered before a megabyte more had come.
        pongs = [frame.n for frame in agent.said if isinstance(frame, Pong)]
        assert len(pongs) > 20


def test_without_credit_the_flood_stops_at_a_megabyte(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"0123456789abcde\n" * 300_000)
    with RunningAgent() as agent:
        agent.wait(Hello)
        agent.ask("tail", path=str(log), backlog=1 << 30)
        while _logged(agent) < 1 << 20:
            agent.wait(Log)
        first = agent.wait(Beat).n
        agent.wait(Beat, lambda beat: beat.n >= first + 2)
        sent = _logged(agent)
        assert 1 << 20 <= sent < (1 << 20) + 48 * 1024
        agent.ask("untail", path=str(log))
        agent.ask("ack", path=str(log), offset=sent)
        agent.wait(Beat)
        agent.wait(Beat)
        assert _logged(agent) == sent


def _logged(agent: RunningAgent) -> int:
    """Bytes of the log that have come."""
    return sum(len(frame.raw) for frame in agent.said if isinstance(frame, Log))
