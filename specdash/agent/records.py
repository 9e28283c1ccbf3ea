"""What was done for which token: one private folder for each, made before anything is changed.

``RUN/TOKEN/claim`` says who set out to do what, ``answer`` what came of it; a launch keeps more beside
them. Making the folder is the claim: of several that try, one succeeds.
"""

import json
import os
import re
import stat
import threading
import time

from specdash.agent import wire
from specdash.agent.census import is_dead, stat_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{3,63}")
KEPT = 7 * 86400
"""Seconds for which the record of something that is over is kept."""
LOOK = 0.05
CLAIMED = 2.0
"""Seconds in which whoever made a folder says who they are, and in which a launcher's words still come."""
LONGEST = 900.0
"""Seconds to wait for somebody else, who is alive, to finish the same request."""


def in_words(error: OSError) -> str:
    """An error of the system as an operator reads it."""
    words = error.strerror or str(error)
    if isinstance(error, PermissionError):
        words = "denied: " + words
    return "%s: %s" % (words, error.filename) if error.filename else words


def private(path: str) -> str:
    """Make a folder that only we may enter, or check that it is one. Raises ``wire.BadRequest``."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise wire.BadRequest("denied: %s is not a folder of ours; nothing is kept there" % path)
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        raise wire.BadRequest("no place for records: %s" % in_words(error))
    return path


def write_json(path: str, content: "Json") -> None:
    """Put a file in place whole, or not at all."""
    beside = "%s.%d.%d" % (path, os.getpid(), threading.get_ident())
    with open(beside, "w") as file:
        json.dump(content, file)
    os.replace(beside, path)


def read_json(path: str) -> "Json | None":
    """A file written by ``write_json``, or None where there is none."""
    try:
        with open(path) as file:
            content: "Json" = json.load(file)
    except (OSError, ValueError):
        return None
    return content


def start_of(host: "Host", pid: int) -> "int | None":
    """When a process began, in clock ticks after boot; None when it is not there or waits to be reaped."""
    found = stat_of(host, pid)
    return None if found is None or is_dead(host, pid, found) else found.start


class Record(object):
    """One token's folder."""

    def __init__(self, folder: str, host: "Host") -> None:
        self.folder = folder
        self.token = os.path.basename(folder)
        self.says = ""
        """The outcome in a few words, for the host's log."""
        self._host = host

    def read(self, name: str) -> "Json | None":
        """A part of the record, or None."""
        return read_json(os.path.join(self.folder, name))

    def write(self, name: str, content: "Json") -> None:
        """Keep a part of the record."""
        write_json(os.path.join(self.folder, name), content)

    def settle(self, answer: "Json") -> None:
        """Keep the answer. Where that fails the answer still goes out once."""
        try:
            self.write("answer", answer)
        except OSError:
            pass

    def repeated(self, request: "Json", resume: "Callable[[Record], Json | None]") -> "Json":
        """The answer that was given to this token, waiting for it while somebody works on it.

        ``resume`` looks whether what was begun by somebody who is gone has gone on without them.
        """
        began = self._host.monotonic()
        while True:
            answer, claim = self.read("answer"), self.read("claim")
            waited = self._host.monotonic() - began
            if claim and claim["digest"] != digest(request):
                raise wire.BadRequest("this token was used for another request (%s)" % claim["verb"])
            if answer is None and claim and not self.claimed_by_the_living(claim):
                answer = self.read("answer") or resume(self)
                if answer is None and waited > CLAIMED:
                    raise wire.BadRequest("unfinished: begun by an agent that is gone")
            if answer is not None:
                return marked(answer, self.folder)
            if waited > (LONGEST if claim else CLAIMED):
                raise wire.BadRequest("unfinished: claimed, and nothing more is known")
            time.sleep(LOOK)

    def claimed_by_the_living(self, claim: "Json") -> bool:
        """Whether the agent that set out to do it still runs."""
        return bool(claim["boot"] == _boot() and start_of(self._host, claim["pid"]) == claim["start"])


class Records(object):
    """The folders of all tokens."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._swept = False

    @property
    def folder(self) -> str:
        """Where they lie; made when first asked for."""
        return private(self._host.run_folder())

    def claim(self, token: object, request: "Json") -> "tuple[Record, bool]":
        """The token's record, and whether it is ours to act on: nobody was there before."""
        name = checked(token)
        folder = os.path.join(self.folder, name)
        record = Record(folder, self._host)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return record, False
        me = os.getpid()
        claim = {"verb": request["r"], "digest": digest(request), "at": self._host.now(), "pid": me}
        record.write("claim", dict(claim, start=start_of(self._host, me), boot=_boot()))
        self._sweep()
        return record, True

    def find(self, token: object) -> "Record | None":
        """The record of a token that was claimed, or None."""
        folder = os.path.join(self._host.run_folder(), checked(token))
        return Record(folder, self._host) if os.path.isdir(folder) else None

    def all(self) -> "list[Record]":
        """Every record; none where nothing was ever done."""
        place = self._host.run_folder()
        try:
            names = [name for name in os.listdir(place) if TOKEN.fullmatch(name)]
        except OSError:
            return []
        return [Record(os.path.join(place, name), self._host) for name in sorted(names)]

    def _sweep(self) -> None:
        """Once for each agent: drop the records of what was over long ago."""
        if self._swept:
            return
        self._swept = True
        import shutil  # 1 MiB that most agents never need

        for record in self.all():
            over = record.read("exit") if record.read("start") else record.read("answer")
            try:
                old = time.time() - os.stat(record.folder).st_mtime > KEPT
            except OSError:
                continue
            if over and old:
                shutil.rmtree(record.folder, ignore_errors=True)


def checked(token: object) -> str:
    """A token that is fit to name a folder."""
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        raise wire.BadRequest("a token is 4 to 64 letters, digits, - and _")
    return token


def digest(request: "Json") -> str:
    """The request without its name and number: the same for the same wish."""
    import hashlib

    wish = {key: value for key, value in request.items() if key not in ("id", "token")}
    return hashlib.sha256(json.dumps(wish, sort_keys=True).encode()).hexdigest()


def marked(answer: "Json", folder: str) -> "Json":
    """An answer as it is given a second time."""
    return dict(answer, value=dict(answer.get("value") or {"folder": folder}, repeat=True))


def _boot() -> str:
    """The real kernel's boot id: a simulated host's record is kept by real processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""
