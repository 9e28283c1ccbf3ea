"""The load generator as a process: started with the load, listened to, ended in order or by force."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from specdash.bench.events import AnyEvent, Begin, End
from specdash.bench.plan import parse
from specdash.errors import SpecdashError
from specdash.measuring.local import LocalGenerator

LOAD = parse({"url": "http://127.0.0.1:1", "requests": 4})
PRELUDE = "import json, signal, sys, time\nload = json.loads(sys.stdin.readline())\n"
BEGIN = 'print(json.dumps({"event": "begin", "at": 1.0, "requests": load["requests"]}), flush=True)\n'
END = 'print(json.dumps({"event": "end", "cancelled": True}), flush=True)\n'


def program(tmp_path: Path, text: str, **options: float) -> LocalGenerator:
    file = tmp_path / "generator.py"
    file.write_text(PRELUDE + text, encoding="utf-8")
    return LocalGenerator((sys.executable, str(file)), **options)


async def told(generator: LocalGenerator) -> list[AnyEvent]:
    return [event async for event in generator.run(LOAD)]


async def test_it_gets_the_load_and_its_lines_come_in_order(tmp_path: Path) -> None:
    events = await told(program(tmp_path, BEGIN + END))
    assert [type(event) for event in events] == [Begin, End]
    assert isinstance(events[0], Begin)
    assert events[0].requests == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise SystemExit('no memory left')", r"ended by itself \(status 1\): no memory left"),
        ("print('no JSON')", "cannot be understood"),
    ],
)
async def test_one_that_fails_says_why(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SpecdashError, match=says):
        await told(program(tmp_path, text))


async def test_one_that_is_not_there_is_said() -> None:
    with pytest.raises(SpecdashError, match="cannot be started"):
        await told(LocalGenerator(("/nonexistent/python",)))


async def test_stopping_ends_it_in_order(tmp_path: Path) -> None:
    end = f"def end(*_):\n    {END.strip()}\n    sys.exit(0)\nsignal.signal(signal.SIGINT, end)\n"
    text = f"{end}{BEGIN}time.sleep(60)"
    generator = program(tmp_path, text)
    events: list[AnyEvent] = []
    async for event in generator.run(LOAD):
        events.append(event)
        generator.stop()
    assert isinstance(events[-1], End)


async def test_one_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    text = (
        "import os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        'print(json.dumps({"event": "begin", "at": float(os.getpid())}), flush=True)\ntime.sleep(60)'
    )
    generator = program(tmp_path, text, grace_s=0.1)
    events = generator.run(LOAD)
    event = await anext(events)
    assert isinstance(event, Begin)
    pid = int(event.at)
    generator.stop()
    with pytest.raises(SpecdashError, match="status -9"):
        await anext(events)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
