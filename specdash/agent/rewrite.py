"""Changing a file by compare-and-swap, with a backup outside the model's folder, and taking it back.

The new bytes are written beside the file and put in its place by one rename, after the old bytes have been
compared once more. The kernel has no compare-and-rename: between the last look and the rename lie some
microseconds in which a writer that knows nothing of us would be overwritten (its bytes are then lost; the
backup holds what we compared).
"""

import base64
import binascii
import errno
import fcntl
import hashlib
import os
import secrets
import stat as modes
import tempfile
import time

from specdash.agent import wire
from specdash.agent.files import Place, attributes, open_file
from specdash.agent.records import checked, private, read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.host import Host
    from specdash.agent.records import Record

    Json = dict[str, Any]

LONGEST = 64 << 20
"""Bytes of a file that we would change."""
LOCK_LIMIT = 5.0
NEW_MODE = 0o644


class Old(object):
    """The file as it is now; ``data`` is None where there is none."""

    def __init__(self, path: str) -> None:
        self.data: "bytes | None" = None
        self.status: "os.stat_result | None" = None
        try:
            fd = open_file(path)
        except FileNotFoundError:
            return
        with os.fdopen(fd, "rb") as file:
            self.status = os.fstat(fd)
            if self.status.st_size > LONGEST:
                raise wire.BadRequest("%s is too long to be changed here" % path)
            self.data = file.read()

    @property
    def sha256(self) -> "str | None":
        """The hash of the bytes; None where there is no file."""
        return None if self.data is None else hashlib.sha256(self.data).hexdigest()

    @property
    def identity(self) -> "tuple[object, ...]":
        """What must still be the same right before the swap."""
        status = self.status
        return (self.sha256, status and (status.st_dev, status.st_ino))


def write_file(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb."""
    try:
        data = base64.b64decode(request["data"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise wire.BadRequest("write_file: data is not base64: %s" % error)
    place = Place(request["path"])
    how = request.get("link") or ("replace" if place.hf_cache else "through")
    if how not in ("replace", "through"):
        raise wire.BadRequest("write_file: a link is replaced or written through, not %s" % repr(how)[:40])
    swap = Swap(acts.host, place, place.entry if how == "replace" else place.real, request["expect"])
    with swap:
        backup = swap.back_up(hashlib.sha256(data).hexdigest()) if request.get("backup", True) else None
        swap.put(data)
    record.says = "%s is now %s" % (swap.target, hashlib.sha256(data).hexdigest()[:12])
    return swap.answer(hashlib.sha256(data).hexdigest(), backup)


def restore(acts: "Acts", request: "Json", record: "Record") -> "Json":
    """The verb: puts back what a backup holds, where the file is still what ``expect`` says."""
    folder = os.path.join(_backups(acts.host), checked(request["backup"]))
    about = read_json(folder + ".json")
    if about is None:
        raise wire.BadRequest("there is no backup %s on this host" % request["backup"])
    place = Place(about["path"])
    swap = Swap(acts.host, place, about["target"], request["expect"])
    with swap:
        if about["before"] is None:
            backup = swap.back_up(None)
            os.unlink(swap.target)
        elif about["link"] is not None:
            _check_link(swap.target, about)
            backup = swap.back_up(about["before"])
            swap.put_link(about["link"])
        else:
            data = _saved(folder, about["before"])
            backup = swap.back_up(about["before"])
            swap.put(data, about)
        os.fsync(swap.folder_fd)
    record.says = "%s is again %s" % (swap.target, (about["before"] or "absent")[:12])
    return swap.answer(about["before"], backup)


class Swap(object):
    """One change of one file, under a lock that other sessions of ours respect."""

    def __init__(self, host: "Host", place: Place, target: str, expect: "str | None") -> None:
        self.target = target
        self.folder_fd = -1
        self.notes: "list[str]" = []
        self._host = host
        self._place = place
        if expect is not None and not isinstance(expect, str):
            raise TypeError("expect is a sha256 or null")
        self._expect = expect
        self._old = Old(place.real)
        self._replaces_link = place.link is not None and target == place.entry

    def __enter__(self) -> "Swap":
        self.folder_fd = os.open(os.path.dirname(self.target), os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._lock()
            self._old = self._look()
            if self._old.sha256 != self._expect:
                raise wire.BadRequest(
                    "changed: %s is %s, not %s"
                    % (self._place.path, _short(self._old.sha256), _short(self._expect))
                )
            status = self._old.status
            if status is not None and status.st_nlink > 1 and not self._replaces_link:
                self.notes.append("it had %d hard links: the others keep the old bytes" % status.st_nlink)
        except BaseException:
            os.close(self.folder_fd)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.folder_fd)

    def _lock(self) -> None:
        deadline = self._host.monotonic() + LOCK_LIMIT
        while True:
            try:
                fcntl.flock(self.folder_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    return  # a network disk without locks: the comparison has to do
                if self._host.monotonic() > deadline:
                    raise wire.BadRequest("busy: another specdash is changing a file in that folder")
            time.sleep(0.02)

    def _look(self) -> Old:
        """The file as it is at this moment, behind the same links as when we first looked."""
        if Place(self._place.path).real != self._place.real:
            raise wire.BadRequest("changed: %s leads elsewhere now" % self._place.path)
        return Old(self._place.real)

    def back_up(self, after: "str | None") -> str:
        """Save the bytes, and all that is needed to bring them back; returns the backup's name."""
        name = "%s-%s" % (time.strftime("%Y%m%dT%H%M%S"), secrets.token_hex(4))
        path = os.path.join(_backups(self._host), name)
        status = self._old.status
        if self._old.data is not None:
            with open(path + ".data", "xb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(self._old.data)
                file.flush()
                os.fsync(file.fileno())
        about: "Json" = {"path": self._place.path, "target": self.target, "real": self._place.real}
        about.update(before=self._old.sha256, after=after, at=self._host.now())
        about["link"] = self._place.link if self._replaces_link else None
        if status is not None:
            about.update(mode=modes.S_IMODE(status.st_mode), uid=status.st_uid, gid=status.st_gid)
        write_json(path + ".json", about)
        return name

    def put(self, data: bytes, about: "Json | None" = None) -> None:
        """Put new bytes in the place of the old. Raises ``wire.BadRequest`` where they have changed."""
        fd, beside = tempfile.mkstemp(prefix=".specdash-", dir=os.path.dirname(self.target))
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                self._dress(file.fileno(), about)
                os.fsync(file.fileno())
            self._swap_in(beside)
        except BaseException:
            _forget(beside)
            raise
        os.fsync(self.folder_fd)

    def put_link(self, link: str) -> None:
        """Put a symbolic link in the place of the file."""
        beside = os.path.join(os.path.dirname(self.target), ".specdash-" + secrets.token_hex(6))
        os.symlink(link, beside)
        try:
            self._swap_in(beside)
        except BaseException:
            _forget(beside)
            raise

    def answer(self, after: "str | None", backup: "str | None") -> "Json":
        """The reply's value."""
        place = self._place
        return {
            "path": place.path,
            "entry": place.entry,
            "real": os.path.realpath(self.target),
            "sha256": after,
            "before": self._old.sha256,
            "backup": backup,
            "notes": self.notes,
        }

    def _dress(self, fd: int, about: "Json | None") -> None:
        """Mode, owner and attributes of the old file; refuses where they cannot be kept."""
        status = self._old.status
        mode, uid, gid = NEW_MODE, os.geteuid(), os.getegid()
        if about is not None:
            mode, uid, gid = about["mode"], about["uid"], about["gid"]
        elif status is not None:
            mode, uid, gid = modes.S_IMODE(status.st_mode), status.st_uid, status.st_gid
        mine = os.fstat(fd)
        if (mine.st_uid, mine.st_gid) != (uid, gid):
            try:
                os.fchown(fd, uid, gid)
            except PermissionError:
                raise wire.BadRequest("denied: %s belongs to another user or group" % self.target)
        os.fchmod(fd, mode)
        if status is None:
            return
        for name in attributes(self._place.real):
            value = os.getxattr(self._place.real, name)
            try:
                os.setxattr(fd, name, value)
            except OSError as error:
                if _attribute(fd, name) != value:
                    raise wire.BadRequest(
                        "denied: the attribute %s cannot be kept: %s" % (name, error.strerror)
                    )

    def _swap_in(self, beside: str) -> None:
        """The last comparison, and the rename."""
        if self._expect is None:
            try:
                os.link(beside, self.target)  # fails where somebody has made the file meanwhile
            except FileExistsError:
                raise wire.BadRequest("changed: %s exists now" % self.target)
            os.unlink(beside)
            return
        if self._look().identity != self._old.identity:
            raise wire.BadRequest("changed: %s was changed just now by somebody else" % self._place.path)
        os.rename(beside, self.target)


def _backups(host: "Host") -> str:
    return private(os.path.join(private(host.state_folder()), "backups"))


def _saved(path: str, sha256: str) -> bytes:
    with open(path + ".data", "rb") as file:
        data = file.read()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise wire.BadRequest("the backup %s.data is damaged: nothing was changed" % path)
    return data


def _check_link(target: str, about: "Json") -> None:
    """Whether the old link would lead to the old bytes again."""
    behind = os.path.join(os.path.dirname(target), about["link"])
    if Old(behind).sha256 != about["before"]:
        raise wire.BadRequest("changed: what the link led to is no longer there: %s" % behind)


def _attribute(fd: int, name: str) -> "bytes | None":
    try:
        return os.getxattr(fd, name)
    except OSError:
        return None


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _short(sha256: "str | None") -> str:
    return "absent" if sha256 is None else sha256[:12]
