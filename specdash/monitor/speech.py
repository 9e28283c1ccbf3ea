"""A diagnosis in the operator's words: the sentence, the evidence and the remedy of its key."""

from __future__ import annotations

from collections.abc import Mapping

from specdash.monitor.documents import Diagnosis
from specdash.monitor.signatures import Book, Meaning
from specdash.monitor.trouble import Trouble
from specdash.monitor.words import Severity

EVIDENCE_LONG = 300

ANY_TARGET = "TARGET"
"""Stands in a remedy for the host: ``specdash clean TARGET``. Who knows the host puts it there."""


def say(
    book: Book,
    key: str,
    *,
    engine: str | None = None,
    root: bool = True,
    line: int | None = None,
    rank: str | None = None,
    evidence: str = "",
    fields: Mapping[str, str] | None = None,
    severity: Severity | None = None,
) -> Diagnosis:
    """The diagnosis of that key; a key without words speaks by its name."""
    meaning = book.meanings.get(key) or Meaning(says=key.replace("_", " "), severity="error")
    remedy = meaning.remedy_of.get(engine or "", meaning.remedy)
    known = _Blanks(fields or {})
    return Diagnosis(
        key=key,
        root=root,
        severity=severity or meaning.severity,
        line=line,
        rank=rank,
        summary=_fill(meaning.says, known),
        evidence=_short(evidence),
        remedy=tuple(_fill(one, known) for one in remedy),
    )


def _short(text: str) -> str:
    """As much of it as is kept; it is cut between two words: half a number would be another one."""
    if len(text) <= EVIDENCE_LONG:
        return text
    kept, blank, last = text[:EVIDENCE_LONG].rpartition(" ")
    return f"{kept if blank else last} …"


def say_trouble(book: Book, trouble: Trouble, key: str, *, engine: str | None, root: bool) -> Diagnosis:
    """The diagnosis behind a line of the log."""
    fields = {"exception": trouble.exception or "an error", **trouble.fields}
    if "port" in fields:
        fields["port"] = f": {fields['port']}"
    return say(
        book,
        key,
        engine=engine,
        root=root,
        line=trouble.line,
        rank=trouble.rank,
        evidence=trouble.text,
        fields=fields,
        severity=None if root else "warning",
    )


def _fill(text: str, fields: Mapping[str, str]) -> str:
    return text.format_map(fields) if "{" in text else text


class _Blanks(dict[str, str]):
    """Names that were not caught leave nothing, or what reads well instead."""

    def __missing__(self, name: str) -> str:
        return {"port": "", "exception": "an error"}.get(name, f"<{name}>")
