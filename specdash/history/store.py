"""The history of good starts: one SQLite file, from which the limits of the next start are learned.

Whatever is wrong with the file (damaged, locked, read-only, made by a newer version) is a
``HistoryError``; a caller says it once and goes on without a history.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from specdash import ownfiles
from specdash.errors import SpecdashError
from specdash.history.runschema import RUNS
from specdash.history.todo import Todo
from specdash.monitor.baseline import Baseline
from specdash.monitor.learning import GoodStart, Kind, Lap, summarise
from specdash.monitor.limits import Learned
from specdash.monitor.words import PHASES, Phase

BUSY_S: Final = 0.5
"""How long another program may keep the file to itself before we go on without it."""

COMPARED: Final = 10
"""So many of the newest starts of a kind are compared."""

KEPT: Final = 50
"""So many of each kind are kept."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE starts (
            id INTEGER PRIMARY KEY,
            identity TEXT NOT NULL UNIQUE,
            host TEXT NOT NULL,
            engine TEXT NOT NULL,
            version TEXT NOT NULL,
            model TEXT NOT NULL,
            draft TEXT NOT NULL,
            parallel TEXT NOT NULL,
            began_at REAL NOT NULL,
            ready_at REAL NOT NULL,
            whole INTEGER NOT NULL
        )
        """,
        "CREATE INDEX starts_by_kind ON starts (host, engine, version, model, draft, parallel, ready_at)",
        """
        CREATE TABLE laps (
            start INTEGER NOT NULL REFERENCES starts (id) ON DELETE CASCADE,
            phase TEXT NOT NULL,
            took_s REAL NOT NULL,
            gap_s REAL NOT NULL,
            PRIMARY KEY (start, phase)
        ) WITHOUT ROWID
        """,
    ),
    (
        """
        CREATE TABLE todos (
            id TEXT PRIMARY KEY,
            target TEXT NOT NULL,
            title TEXT NOT NULL,
            note TEXT NOT NULL,
            state TEXT NOT NULL,
            place REAL NOT NULL,
            made REAL NOT NULL,
            ended REAL
        ) WITHOUT ROWID
        """,
    ),
    RUNS,
    (
        """
        CREATE TABLE baselines (
            uuid TEXT NOT NULL,
            call TEXT NOT NULL,
            boot TEXT NOT NULL,
            used_mib INTEGER NOT NULL,
            seen_at REAL NOT NULL,
            PRIMARY KEY (uuid, call)
        ) WITHOUT ROWID
        """,
    ),
)
"""From schema n to n + 1: what the file's ``user_version`` counts. Only ever added to."""

_KIND = "host = ? AND engine = ? AND version = ? AND model = ? AND draft = ? AND parallel = ?"


_TODO = ("id", "title", "note", "state", "place", "made", "ended")


class HistoryError(SpecdashError):
    """The history cannot be read or written; says what to do."""

    exit_code: ClassVar[int] = 1


class Store:
    """An open history. Use it in the thread that opened it."""

    def __init__(self, path: Path) -> None:
        """Open or create it, for you alone. Raises ``HistoryError``."""
        self.path = path
        with self._blamed():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Before SQLite makes it: its own files beside it take over these rights. Never one that is there:
            # closing it would take the locks of this program's other connections away, and another program
            # would end the journal under them (sqlite.org/howtocorrupt.html, 2.2).
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            ownfiles.check(path, None)
            self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                self._db.execute("PRAGMA foreign_keys = ON")
                self._migrate()
                # A network file system may refuse, and so does SQLite, without waiting, while another opens
                # it for the first time, too; then it is a little slower.
                with suppress(sqlite3.OperationalError):
                    self._db.execute("PRAGMA journal_mode = WAL")
                    self._db.execute("PRAGMA synchronous = NORMAL")
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._blamed():
            self._db.close()

    def learned(self, kind: Kind) -> Learned | None:
        """What the newest good starts of this kind say together; None where there is none.

        Before a log has said its version, that of the last start of the kind is expected.
        """
        with self._blamed():
            if not kind.version:
                kind = msgspec.structs.replace(kind, version=self._last_version(kind))
            starts = self._db.execute(
                f"SELECT id, whole FROM starts WHERE {_KIND} ORDER BY ready_at DESC LIMIT ?",
                (*_columns(kind), COMPARED),
            ).fetchall()
            return summarise([(self._laps(start), bool(whole)) for start, whole in starts])

    def keep(self, start: GoodStart) -> bool:
        """Keep a start, whole or not at all; False where it is kept already."""
        columns = (start.identity, *_columns(start.kind), start.began_at, start.ready_at, start.whole)
        with self._blamed(), self._transaction():
            made = self._db.execute(
                "INSERT OR IGNORE INTO starts"
                " (identity, host, engine, version, model, draft, parallel, began_at, ready_at, whole)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                columns,
            )
            if not made.rowcount:
                return False
            laps = [(made.lastrowid, phase, lap.took_s, lap.gap_s) for phase, lap in start.laps.items()]
            self._db.executemany("INSERT INTO laps VALUES (?, ?, ?, ?)", laps)
            self._forget(start.kind)
        return True

    def todos(self, target: str) -> tuple[Todo, ...]:
        """The operator's own entries for a host, in their order."""
        with self._blamed():
            rows = self._db.execute(
                "SELECT id, title, note, state, place, made, ended FROM todos WHERE target = ?"
                " ORDER BY place, made",
                (target,),
            ).fetchall()
        return tuple(msgspec.convert(dict(zip(_TODO, row, strict=True)), Todo) for row in rows)

    def keep_todo(self, target: str, todo: Todo) -> None:
        """Keep an entry, new or changed."""
        values = (todo.id, target, *(getattr(todo, name) for name in _TODO[1:]))
        with self._blamed():
            self._db.execute("INSERT OR REPLACE INTO todos VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def drop_todo(self, todo_id: str) -> None:
        """Take an entry away."""
        with self._blamed():
            self._db.execute("DELETE FROM todos WHERE id = ?", (todo_id,))

    def baselines(self, cards: Mapping[str, str]) -> dict[str, int]:
        """What these cards (UUID → way of counting) showed in use without an owner, in MiB."""
        found = {}
        with self._blamed():
            for uuid, call in cards.items():
                row = self._db.execute(
                    "SELECT used_mib FROM baselines WHERE uuid = ? AND call = ?", (uuid, call)
                ).fetchone()
                if row:
                    found[uuid] = int(row[0])
        return found

    def keep_baseline(self, card: Baseline) -> None:
        """The least of this boot; what an earlier boot showed is replaced."""
        with self._blamed():
            self._db.execute(
                "INSERT INTO baselines VALUES (?, ?, ?, ?, ?) ON CONFLICT (uuid, call) DO UPDATE SET"
                " used_mib = CASE WHEN boot = excluded.boot THEN min(used_mib, excluded.used_mib)"
                " ELSE excluded.used_mib END, boot = excluded.boot, seen_at = excluded.seen_at",
                (card.uuid, card.call, card.boot, card.mib, card.at),
            )

    def _last_version(self, kind: Kind) -> str:
        host, engine, _, *others = _columns(kind)
        found: tuple[str] | None = self._db.execute(
            "SELECT version FROM starts WHERE host = ? AND engine = ? AND model = ? AND draft = ?"
            " AND parallel = ? ORDER BY ready_at DESC LIMIT 1",
            (host, engine, *others),
        ).fetchone()
        return found[0] if found else ""

    def _laps(self, start: int) -> dict[Phase, Lap]:
        rows = self._db.execute("SELECT phase, took_s, gap_s FROM laps WHERE start = ?", (start,))
        return {phase: Lap(took_s=took, gap_s=gap) for phase, took, gap in rows if phase in PHASES}

    def _forget(self, kind: Kind) -> None:
        newest = f"SELECT id FROM starts WHERE {_KIND} ORDER BY ready_at DESC LIMIT ?"
        self._db.execute(
            f"DELETE FROM starts WHERE {_KIND} AND id NOT IN ({newest})",
            (*_columns(kind), *_columns(kind), KEPT),
        )

    def _migrate(self) -> None:
        if self._version() == len(MIGRATIONS):
            return
        with self._transaction():
            version = self._version()  # another program may have been quicker
            if version > len(MIGRATIONS):
                raise HistoryError(
                    f"{self.path} was made by a newer specdash (schema {version}; this one knows"
                    f" {len(MIGRATIONS)})",
                    "update specdash",
                )
            for script in MIGRATIONS[version:]:
                for statement in script:
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        return version

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Say what is wrong in one sentence."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise self._refused(error) from error
        except sqlite3.DatabaseError as error:
            raise HistoryError(
                f"{self.path} is damaged: {error}", "move it away: a new one is made at the next start"
            ) from error
        except OverflowError as error:
            raise HistoryError("no run has so large a number", "specdash runs lists them") from error
        except OSError as error:
            raise self._unwritten(error) from error

    def _refused(self, error: sqlite3.OperationalError) -> HistoryError:
        """What SQLite could not do, blamed on what is so of the file and its folder."""
        text, folder = str(error), self.path.parent
        if "locked" in text or "busy" in text:
            return HistoryError(f"{self.path}: another specdash is writing", "try again")
        if not folder.is_dir():
            number = errno.ENOENT
        elif "full" in text:
            number = errno.ENOSPC
        elif not self.path.exists():
            return HistoryError(f"{self.path} is gone", "start specdash again: a new one is made")
        elif os.statvfs(folder).f_flag & os.ST_RDONLY:
            number = errno.EROFS
        elif not (os.access(self.path, os.W_OK) and os.access(folder, os.W_OK)):
            number = errno.EACCES
        elif "I/O" in text:
            number = errno.EIO
        else:
            return HistoryError(f"{self.path}: {text}", "move it away: a new one is made at the next start")
        return self._unwritten(OSError(number, text))

    def _unwritten(self, error: OSError) -> HistoryError:
        return HistoryError(f"{self.path.name}: {ownfiles.unwritten(self.path, error)}")


def _columns(kind: Kind) -> tuple[str, ...]:
    return kind.host, kind.engine, kind.version, kind.model, kind.draft, kind.parallel
