"""Reading files of the host: bytes with their hash for an edit, and facts for a check before a launch."""

import base64
import hashlib
import json
import os
import stat as modes

from specdash.agent import wire
from specdash.agent.patience import NoAnswer, Patience
from specdash.agent.processes import user_name
from specdash.agent.records import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts

    Json = dict[str, Any]

MOST = 512 * 1024
"""Bytes of one answer: with base64 it stays below the 1 MiB that a line may have."""
MOST_ENTRIES = 2000
ANSWER_LIMIT = 5.0
"""Seconds in which a file system answers, or it is given up: a dead one would hold the request for ever."""
LONGEST_INDEX = 64 << 20
KINDS = (
    (modes.S_ISREG, "file"),
    (modes.S_ISDIR, "folder"),
    (modes.S_ISLNK, "link"),
    (modes.S_ISFIFO, "pipe"),
    (modes.S_ISSOCK, "socket"),
)


class Place(object):
    """A path with its links taken apart.

    ``entry`` is the folder's real path with the name in it: what a replacement would replace. ``real`` is
    the file behind all links. In a Hugging Face cache ``entry`` is a link of a snapshot, and ``real`` a blob
    that is named by its hash and shared by every revision that links to it.
    """

    def __init__(self, path: object) -> None:
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise wire.BadRequest("a path begins at the root, not %s" % repr(path)[:200])
        self.path = path
        self.folder = os.path.realpath(os.path.dirname(os.path.normpath(path)))
        self.entry = os.path.join(self.folder, os.path.basename(os.path.normpath(path)))
        self.real = os.path.realpath(self.entry)
        self.link = os.readlink(self.entry) if os.path.islink(self.entry) else None
        self.hf_cache = self.link is not None and "/snapshots/" in self.entry and "/blobs/" in self.real


def open_file(path: str) -> int:
    """A descriptor of a plain file. Raises ``wire.BadRequest`` for a pipe, a device, a folder."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not modes.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise wire.BadRequest("%s is not a plain file" % path)
    return fd


def kind_of(mode: int) -> str:
    """What a file is."""
    return next((word for test, word in KINDS if test(mode)), "device")


def facts(acts: "Acts", found: os.stat_result) -> "Json":
    """A file's status for a person."""
    return {
        "kind": kind_of(found.st_mode),
        "mode": modes.S_IMODE(found.st_mode),
        "uid": found.st_uid,
        "gid": found.st_gid,
        "user": user_name(found.st_uid),
        "group": _group_name(found.st_gid),
        "size": found.st_size,
        "mtime": round(acts.host.mtime(found), 3),
        "ino": found.st_ino,
        "dev": found.st_dev,
        "nlink": found.st_nlink,
    }


def read_file(acts: "Acts", request: "Json") -> "Json":
    """The verb. A file that is not there is an answer, too: ``exists`` is false."""
    patience = Patience(ANSWER_LIMIT)
    try:
        return patience.call(_read, acts, request)
    finally:
        patience.close()


def _read(acts: "Acts", request: "Json") -> "Json":
    place = Place(request["path"])
    limit = min(MOST, max(0, int(request.get("limit") or MOST)))
    offset = max(0, int(request.get("offset") or 0))
    answer: "Json" = {
        "path": place.path,
        "exists": True,
        "entry": place.entry,
        "real": place.real,
        "link": place.link,
        "hf_cache": place.hf_cache,
        "writable": os.access(place.folder, os.W_OK | os.X_OK),
    }
    try:
        fd = open_file(place.real)
    except FileNotFoundError:
        return dict(answer, exists=False, data="", sha256=None, truncated=False, stat=None, xattrs=[])
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        file.seek(offset)
        data = file.read(limit)
        whole = offset == 0 and not file.read(1)
    answer.update(
        data=base64.b64encode(data).decode("ascii"),
        sha256=hashlib.sha256(data).hexdigest() if whole else None,
        truncated=not whole,
        stat=facts(acts, found),
        xattrs=attributes(place.real),
    )
    return answer


def stat_files(acts: "Acts", request: "Json") -> "Json":
    """The verb. One row for each path, in the order of the request; one that hangs ends the looking."""
    head = min(4096, max(0, int(request.get("head", 64))))
    patience = Patience(ANSWER_LIMIT)
    try:
        return {"files": [_patiently(patience, acts, path, head) for path in request["paths"]]}
    finally:
        patience.close()


def _patiently(patience: Patience, acts: "Acts", path: object, head: int) -> "Json":
    try:
        if patience.unanswered:
            raise NoAnswer
        return patience.call(_about, acts, path, head)
    except NoAnswer:
        return {"path": path, "exists": False, "error": "no answer from the file system"}


def _about(acts: "Acts", path: object, head: int) -> "Json":
    place = Place(path)
    row: "Json" = {"path": place.path, "exists": False, "link": place.link, "real": place.real, "error": None}
    try:
        found = os.stat(place.real)
        row.update(facts(acts, found), exists=True, readable=os.access(place.real, os.R_OK))
        if modes.S_ISDIR(found.st_mode):
            row["entries"] = _entries(place.real)
        elif modes.S_ISREG(found.st_mode):
            with os.fdopen(open_file(place.real), "rb") as file:
                row["head"] = base64.b64encode(file.read(head)).decode("ascii")
                if place.path.endswith(".index.json") and found.st_size <= LONGEST_INDEX:
                    file.seek(0)
                    shards = _shards(file.read())
                    if shards is not None:
                        row["shards"] = shards
    except OSError as error:
        row["error"] = in_words(error)
    return row


def _entries(folder: str) -> "list[list[Any]]":
    """Names and sizes (of what links lead to) in a folder; a link that leads nowhere has the size -1."""
    rows: "list[list[Any]]" = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(rows) == MOST_ENTRIES:
                break
            try:
                rows.append([entry.name, entry.stat().st_size])
            except OSError:
                rows.append([entry.name, -1])
    return sorted(rows, key=lambda row: str(row[0]))


def _shards(data: bytes) -> "list[str] | None":
    """The files that a safetensors or torch index names; None where it is no such index."""
    try:
        weights = json.loads(data.decode("utf-8"))["weight_map"]
        return sorted({str(name) for name in weights.values()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def attributes(path: str) -> "list[str]":
    """Names of a file's extended attributes; none where the file system has no such thing."""
    try:
        return sorted(os.listxattr(path))
    except OSError:
        return []


def _group_name(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
