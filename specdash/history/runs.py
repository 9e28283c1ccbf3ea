"""The runs of the history: benchmarks with everything they depend on, and their raw records.

A launch has runs; a run is one JSON document, with its raw per-request records beside it, packed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from specdash.bench.events import AnyEvent, decode, encode
from specdash.bench.record import Measured
from specdash.history.store import HistoryError, Store

MOST_RAW: Final = 512 << 20
"""Bytes of raw records that are unpacked at most: a file cannot make us fill the memory."""

_DECODER = msgspec.json.Decoder(Measured)


class Runs(Store):
    """The runs in the file. Use it in the thread that opened it."""

    unreadable: tuple[int, ...] = ()
    """Numbers of runs that ``all`` has passed over because they are damaged."""

    def add(self, run: Measured, records: Iterable[AnyEvent] = ()) -> Measured:
        """Keep a run; returns it with its number."""
        lines = zlib.compress(b"\n".join(encode(event) for event in records), 6)
        with self._blamed(), self._transaction():
            launch = self._launch(run)
            made = self._db.execute(
                "INSERT INTO runs (launch, at, name, document) VALUES (?, ?, ?, ?)",
                (launch, run.at, run.name, _document(run)),
            )
            number = made.lastrowid
            self._db.execute("INSERT INTO records VALUES (?, ?)", (number, lines))
            self._tag(number, run.tags)
        return msgspec.structs.replace(run, id=number)

    def all(self, *, host: str | None = None, tag: str | None = None) -> tuple[Measured, ...]:
        """Every run, oldest first; of one host or with one tag only where that is said."""
        with self._blamed():
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY at, id").fetchall()
            found = {row[0]: self._readable(*row) for row in rows}
        self.unreadable = tuple(number for number, run in found.items() if run is None)
        runs = [run for run in found.values() if run is not None]
        return tuple(run for run in runs if host in (None, run.host) and (tag is None or tag in run.tags))

    def get(self, number: int) -> Measured:
        """One run. Raises ``HistoryError`` where there is none of this number."""
        with self._blamed():
            row = self._db.execute(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (number,)).fetchone()
            if row is None:
                raise HistoryError(f"there is no run {number}", "specdash runs lists them")
            return self._run(*row)

    def find(self, word: str) -> tuple[Measured, ...]:
        """The runs that a word names: a number, a name, a variant or a tag. Raises ``HistoryError``."""
        if word.isdecimal():
            return (self.get(int(word)),)
        found = tuple(run for run in self.all() if word and word in (run.name, run.variant, *run.tags))
        if not found:
            raise HistoryError(
                f"no run is called {word or repr(word)}",
                "a number, a name, a variant or a tag: specdash runs",
            )
        return found

    def records(self, number: int) -> tuple[AnyEvent, ...]:
        """What the load generator printed of a run; empty where nothing was kept."""
        with self._blamed():
            row = self._db.execute("SELECT lines FROM records WHERE run = ?", (number,)).fetchone()
        if row is None:
            return ()
        unpacker = zlib.decompressobj()
        try:
            text = unpacker.decompress(row[0], MOST_RAW)
            return tuple(decode(line) for line in text.split(b"\n") if line)
        except (zlib.error, ValueError) as error:
            hint = f"specdash runs delete {number} takes it away"
            raise HistoryError(f"the records of run {number} are damaged: {error}", hint) from error

    def rename(self, number: int, name: str) -> None:
        """Call a run something. Raises ``HistoryError`` where there is none of this number."""
        with self._blamed():
            if not self._db.execute("UPDATE runs SET name = ? WHERE id = ?", (name, number)).rowcount:
                raise HistoryError(f"there is no run {number}", "specdash runs lists them")

    def tag(self, number: int, tags: Sequence[str], *, off: bool = False) -> None:
        """Put tags on a run, or take them off. Raises ``HistoryError`` where there is none of this number."""
        self.get(number)
        with self._blamed(), self._transaction():
            if off:
                self._db.executemany(
                    "DELETE FROM tags WHERE run = ? AND tag = ?", [(number, tag) for tag in tags]
                )
            else:
                self._tag(number, tags)

    def delete(self, numbers: Iterable[int]) -> int:
        """Forget runs and their records; how many there were."""
        with self._blamed(), self._transaction():
            gone = sum(
                self._db.execute("DELETE FROM runs WHERE id = ?", (number,)).rowcount for number in numbers
            )
            self._db.execute("DELETE FROM launches WHERE id NOT IN (SELECT launch FROM runs)")
        return gone

    def purge(self, before: float) -> int:
        """Forget the raw records of older runs; their figures stay. How many were forgotten."""
        with self._blamed():
            gone = self._db.execute(
                "DELETE FROM records WHERE run IN (SELECT id FROM runs WHERE at < ?)", (before,)
            ).rowcount
            self._db.execute("VACUUM")
        return gone

    def _launch(self, run: Measured) -> int:
        identity = run.launch or f"unknown {run.host}"
        self._db.execute(
            "INSERT OR IGNORE INTO launches (identity, host, variant, seen_at) VALUES (?, ?, ?, ?)",
            (identity, run.host, run.variant, run.at),
        )
        found: tuple[int] = self._db.execute(
            "SELECT id FROM launches WHERE identity = ?", (identity,)
        ).fetchone()
        return found[0]

    def _tag(self, number: int | None, tags: Sequence[str]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", [(number, tag) for tag in tags])

    def _readable(self, number: int, name: str, document: bytes) -> Measured | None:
        try:
            return self._run(number, name, document)
        except HistoryError:
            return None

    def _run(self, number: int, name: str, document: bytes) -> Measured:
        try:
            run = _DECODER.decode(document)
        except ValueError as error:
            raise HistoryError(
                f"run {number} cannot be read: {error}", f"specdash runs delete {number} takes it away"
            ) from error
        rows = self._db.execute("SELECT tag FROM tags WHERE run = ? ORDER BY tag", (number,)).fetchall()
        return msgspec.structs.replace(run, id=number, name=name, tags=tuple(row[0] for row in rows))


_COLUMNS: Final = "id, name, document"


def _document(run: Measured) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(run, id=None, name="", tags=()))
