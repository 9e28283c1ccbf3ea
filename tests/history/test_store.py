"""The file of good starts: private, shared by many dashboards, and never in anybody's way."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from specdash.history.store import COMPARED, KEPT, MIGRATIONS, HistoryError, Store
from specdash.history.todo import Todo
from specdash.monitor.baseline import Baseline
from specdash.monitor.learning import GoodStart, Kind, Lap

KIND = Kind(host="gpubox", engine="sglang", version="0.5", model="/models/t", draft="", parallel="TP8")


def start(n: int, took_s: float = 30.0, gap_s: float = 4.0, kind: Kind = KIND) -> GoodStart:
    return GoodStart(
        kind=kind,
        identity=f"boot/{n}:{n}",
        began_at=n * 1000.0,
        ready_at=n * 1000.0 + 500,
        laps={"capture": Lap(took_s=took_s, gap_s=gap_s), "weights": Lap(took_s=158, gap_s=3)},
        whole=True,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.db"


def test_a_start_that_is_kept_is_known_to_the_next_dashboard(path: Path) -> None:
    first = Store(path)
    assert first.learned(KIND) is None
    assert first.keep(start(1))
    first.close()
    second = Store(path)
    learned = second.learned(KIND)
    second.close()
    assert learned is not None
    assert (learned.starts, learned.whole) == (1, 1)
    assert (learned.usual_s["weights"], learned.gap_s["capture"]) == (158, 4)


def test_of_two_dashboards_that_saw_the_same_start_one_keeps_it(path: Path) -> None:
    one, other = Store(path), Store(path)
    assert (one.keep(start(1)), other.keep(start(1))) == (True, False)
    learned = other.learned(KIND)
    assert learned is not None
    assert learned.starts == 1


@pytest.mark.parametrize(
    "other",
    [
        {"host": "dgx2"},
        {"engine": "vllm"},
        {"version": "0.6"},
        {"model": "/models/u"},
        {"draft": "EAGLE3 3 steps"},
        {"parallel": "TP4"},
    ],
)
def test_another_kind_of_start_teaches_nothing(path: Path, other: dict[str, str]) -> None:
    store = Store(path)
    store.keep(start(1, kind=msgspec.structs.replace(KIND, **other)))
    assert store.learned(KIND) is None


def test_before_the_version_is_known_the_last_one_is_expected(path: Path) -> None:
    store = Store(path)
    store.keep(start(2, gap_s=7, kind=msgspec.structs.replace(KIND, version="0.6")))
    store.keep(start(1, gap_s=4))
    learned = store.learned(msgspec.structs.replace(KIND, version=""))
    assert learned is not None
    assert (learned.starts, learned.gap_s["capture"]) == (1, 7)
    assert store.learned(msgspec.structs.replace(KIND, version="", model="/models/u")) is None


def test_the_newest_starts_count_and_the_oldest_are_forgotten(path: Path) -> None:
    store = Store(path)
    store.keep(start(0, took_s=9000, gap_s=4000))
    for n in range(1, KEPT + 1):
        store.keep(start(n, took_s=30 + n / 100))
    learned = store.learned(KIND)
    assert learned is not None
    assert learned.starts == COMPARED
    assert learned.worst_s["capture"] < 31
    rows = sqlite3.connect(path).execute("SELECT count(*), min(began_at) FROM starts").fetchone()
    assert rows == (KEPT, 1000.0)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM laps").fetchone() == (2 * KEPT,)


def test_nobody_else_may_read_it(path: Path) -> None:
    store = Store(path)
    store.keep(start(1))
    rights = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    assert "history.db-wal" in rights, "others may read while one writes"
    assert set(rights.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"not a database, " * 400, b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_damaged_file_is_an_error_that_says_what_to_do(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(HistoryError) as raised:
        Store(path)
    assert "move it away" in str(raised.value)
    assert path.read_bytes() == content, "nothing is taken from it"


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    Store(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(HistoryError, match="newer specdash"):
        Store(path)


def test_a_file_of_every_older_version_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir()
    for known in range(len(MIGRATIONS) + 1):
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path)
        for script in MIGRATIONS[:known]:
            for statement in script:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {known}")
        db.commit()
        db.close()
        store = Store(path)
        assert store.keep(start(1))
        store.close()


def test_a_file_that_another_program_holds_is_an_error_and_no_long_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specdash.history.store.BUSY_S", 0.01)
    store = Store(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(HistoryError, match=r"another specdash is writing \(try again\)"):
        store.keep(start(1))
    holder.execute("ROLLBACK")
    assert store.keep(start(1)), "nothing was kept by halves"


def test_a_full_disk_is_called_full_and_its_folder_is_named(path: Path) -> None:
    store = Store(path)
    store._db.execute("PRAGMA max_page_count = 1")  # SQLite's words are those of a full disk
    todo = Todo(id="a", title="t", note="n" * 9000, place=1.0, made=1.0)
    with pytest.raises(HistoryError) as caught:
        store.keep_todo("gpubox", todo)
    assert str(caught.value) == f"{path.name}: the disk of {path.parent} is full: make room there"


def test_what_sqlite_may_not_write_is_blamed_on_what_is_so_there(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(path)
    readonly = sqlite3.OperationalError("attempt to write a readonly database")
    assert "is mounted read-only" not in str(store._refused(readonly))
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda _path, _mode: False)  # root may write everywhere
        assert "may not be written: mend its rights" in str(store._refused(readonly))
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_RDONLY))
        assert f"the disk of {path.parent} is mounted read-only" in str(store._refused(readonly))
    broken = sqlite3.OperationalError("disk I/O error")
    assert f"the disk of {path.parent} fails" in str(store._refused(broken))
    path.unlink()
    assert f"{path} is gone" in str(store._refused(readonly))
    store.path = tmp_path / "unmounted" / "history.db"
    assert f"there is no folder {tmp_path / 'unmounted'}" in str(store._refused(readonly))


def test_several_that_open_a_new_file_at_once_all_have_it(path: Path) -> None:
    """SQLite does not wait for its journal's mode, and one host's to-dos were not kept all day for it."""
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")  # as it is before the first of them is through
    other.execute("BEGIN IMMEDIATE")
    store = Store(path)
    assert store.learned(KIND) is None
    other.execute("COMMIT")
    assert store.keep(start(1))
    store.close()
    other.close()


def test_what_fails_half_way_is_not_kept_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(path)
    with monkeypatch.context() as broken:
        broken.setattr(store, "_forget", lambda _: store._db.execute("no SQL"))
        with pytest.raises(HistoryError):
            store.keep(start(1))
    assert store.learned(KIND) is None
    assert store.keep(start(1))


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(HistoryError):
        Store(tmp_path / "state" / "history.db")


def test_an_idle_card_is_known_by_the_least_of_the_newest_boot(path: Path) -> None:
    def seen(mib: int, boot: str = "one") -> Baseline:
        return Baseline(uuid="GPU-a", call="v2", boot=boot, mib=mib, at=1.0)

    store = Store(path)
    assert store.baselines({"GPU-a": "v2"}) == {}
    for one in (seen(310), seen(300), seen(305)):
        store.keep_baseline(one)
    assert store.baselines({"GPU-a": "v2", "GPU-b": "v2"}) == {"GPU-a": 300}
    assert store.baselines({"GPU-a": "v1"}) == {}, "counted in another way"
    store.keep_baseline(seen(420, boot="two"))
    assert store.baselines({"GPU-a": "v2"}) == {"GPU-a": 420}, "another driver may be loaded by now"
    store.close()


_END_THE_JOURNAL = (
    "import sqlite3, sys\n"
    "db = sqlite3.connect(sys.argv[1], timeout=0)\n"
    "try: print(db.execute('PRAGMA journal_mode = DELETE').fetchone()[0])\n"
    "except sqlite3.OperationalError as error: print(error)\n"
)


def test_a_second_look_at_the_file_leaves_the_locks_of_the_first(path: Path) -> None:
    first = Store(path)
    first.keep(start(1))
    second = Store(path)
    told = subprocess.run(
        [sys.executable, "-c", _END_THE_JOURNAL, str(path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "database is locked", "another program would end the journal under us"
    second.close()
    first.close()
