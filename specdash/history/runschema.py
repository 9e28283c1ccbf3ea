"""The tables of benchmark runs; see ``specdash.history.runs``."""

from __future__ import annotations

from typing import Final

RUNS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE launches (
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL UNIQUE,
        host TEXT NOT NULL,
        variant TEXT NOT NULL,
        seen_at REAL NOT NULL
    )
    """,
    # AUTOINCREMENT: the number of a run that was deleted never comes to mean another one.
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        launch INTEGER NOT NULL REFERENCES launches (id) ON DELETE CASCADE,
        at REAL NOT NULL,
        name TEXT NOT NULL,
        document BLOB NOT NULL
    )
    """,
    "CREATE INDEX runs_by_time ON runs (at)",
    """
    CREATE TABLE tags (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (run, tag)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE records (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        lines BLOB NOT NULL
    )
    """,
)
