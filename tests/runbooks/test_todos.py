"""To-dos survive whatever happens to the program that they were written in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from specdash.runbooks.todos import Todos

NOW = 1_000.0


def _todos(path: Path | None, target: str = "root@gpubox") -> tuple[Todos, list[str]]:
    said: list[str] = []
    return Todos(target, path, said.append), said


def _titles(todos: Todos) -> list[str]:
    return [todo.title for todo in todos.list]


def _in_files(folder: Path, words: bytes) -> bool:
    return any(words in path.read_bytes() for path in folder.iterdir())


async def test_entries_are_there_again_in_their_order_with_ticks_and_notes(tmp_path: Path) -> None:
    mine, _ = _todos(tmp_path / "history.db")
    for title in ("kill the zombie", "clean up", "three steps"):
        await mine.add(title, "", NOW)
    first, second, third = mine.list
    await mine.tick(first.id, NOW + 5)
    await mine.move(third.id, -1)
    await mine.move(third.id, -1)
    await mine.move(third.id, -1)
    await mine.edit(second.id, "clean GPU 1", "fuser, by hand")
    await mine.close()

    again, said = _todos(tmp_path / "history.db")
    await again.load()
    assert _titles(again) == ["three steps", "kill the zombie", "clean GPU 1"]
    kept = {todo.title: todo for todo in again.list}
    assert (kept["kill the zombie"].state, kept["kill the zombie"].ended) == ("done", NOW + 5)
    assert kept["clean GPU 1"].note == "fuser, by hand"
    await again.tick(first.id, NOW + 9)
    await again.delete(second.id)
    await again.load()
    assert [(todo.title, todo.state) for todo in again.list] == [
        ("three steps", "pending"),
        ("kill the zombie", "pending"),
    ]
    assert said == []


async def test_each_host_has_its_own_list(tmp_path: Path) -> None:
    mine, _ = _todos(tmp_path / "history.db")
    await mine.add("here", "", NOW)
    other, _ = _todos(tmp_path / "history.db", "dgx2")
    await other.load()
    assert _titles(other) == []


async def test_two_who_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    one, _ = _todos(tmp_path / "history.db")
    two, _ = _todos(tmp_path / "history.db")
    await one.add("from one", "", NOW)
    await two.add("from two", "", NOW + 1)
    await one.load()
    assert _titles(one) == ["from one", "from two"]


async def test_secrets_and_control_codes_of_a_pasted_entry_are_not_kept(tmp_path: Path) -> None:
    mine, _ = _todos(tmp_path / "history.db")
    await mine.add("try HF_TOKEN=hf_abcdefghijklmnopqrstuvwx \x1b[31mnow", "", NOW)
    assert _titles(mine) == ["try HF_TOKEN=<redacted> now"]
    await mine.close()
    assert not _in_files(tmp_path, b"hf_abcdefghij")


async def test_a_history_that_cannot_be_written_is_said_once_and_the_list_goes_on(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_bytes(b"no database at all" * 100)
    mine, said = _todos(tmp_path / "history.db")
    await mine.load()
    await mine.add("still here", "", NOW)
    assert _titles(mine) == ["still here"]
    assert len(said) == 1
    assert said[0].startswith("to-dos are not kept")


def test_an_entry_survives_sigkill_of_the_program_that_wrote_it(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal, sys, pathlib\n"
        "from specdash.runbooks.todos import Todos\n"
        "async def main():\n"
        "    todos = Todos('gpubox', pathlib.Path(sys.argv[1]), print)\n"
        "    await todos.add('before the crash', '', 1.0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    path = tmp_path / "history.db"
    killed = subprocess.run([sys.executable, "-c", script, str(path)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL

    from specdash.history.store import Store

    store = Store(path)
    assert [todo.title for todo in store.todos("gpubox")] == ["before the crash"]
    store.close()
