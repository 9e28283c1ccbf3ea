"""A machine of its own for an sshd: its own user with any login shell, PAM and sudo rules, all made up.

A mount namespace lays files over ``/etc/passwd`` and its like, so nothing of the real machine is changed.
Needs root and the right to make such a namespace; without them these tests are skipped, and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.sshd import Sshd

USER, UID = "op", 4242
PASSWORD = "open sesame"
_HASH = "$6$specdash$CcfxZnjg0ybnT5x47z.QHhjiKCNbOO4krG0K/lP9ljdW.KlbrwuHsoqdO6/22ItOhZAYofFA0rS4N2rM2T4I./"
"""SHA512-crypt of the password."""
_PAM = "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_permit.so\n"
_OVERLAY = """
while [ "$1" != -- ]; do
    if [ -e "$2" ]; then mount --bind "$1" "$2" || exit 1; fi
    shift 2
done
shift
if [ -d /run/sudo ]; then mount -t tmpfs none /run/sudo; fi
exec "$@"
"""


def missing_machine() -> str | None:
    """Why no such machine can be made here, or None."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        return "needs root and unshare: a mount namespace lays other users over /etc/passwd"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        return "no mount namespace may be made here"
    if not Path("/usr/bin/python3").exists():
        return "the made-up user needs a Python of the system's"
    return None


class Machine(Sshd):
    """An sshd whose only user of interest is ``op``: a home folder, a login shell, a password."""

    def __init__(
        self,
        host_keys: Iterable[Path],
        client_key: Path,
        lines: Iterable[str] = (),
        *,
        shell: str = "/bin/sh",
        sudoers: str = "",
    ) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="specdash-machine-"))
        self.root.chmod(0o755)
        self.home = self.root / "home"
        self.home.mkdir()
        os.chown(self.home, UID, UID)
        etc = self._etc(shell, sudoers)
        pairs = [word for name, file in etc.items() for word in (str(file), f"/etc/{name}")]
        wrap = ["unshare", "-m", "--", "/bin/sh", "-c", _OVERLAY, "overlay", *pairs, "--"]
        super().__init__(self.root / "sshd", host_keys, client_key, lines, wrap=wrap, user=USER)
        self.know()

    def _etc(self, shell: str, sudoers: str) -> dict[str, Path]:
        entry = f"{USER}:x:{UID}:{UID}::{self.home}:{shell}\n"
        files = {
            "passwd": (Path("/etc/passwd").read_text() + entry, 0o644),
            "group": (Path("/etc/group").read_text() + f"{USER}:x:{UID}:\n", 0o644),
            "shadow": (f"root:*:19000:0:99999:7:::\n{USER}:{_HASH}:19000:0:99999:7:::\n", 0o600),
            "pam.d/sshd": (_PAM, 0o644),
            "pam.d/sudo": (_PAM, 0o644),
            "sudoers": (f"Defaults !fqdn\n{sudoers}\n", 0o440),
        }
        found = {}
        for name, (text, mode) in files.items():
            file = found[name] = self.root / name.replace("/", "-")
            file.write_text(text)
            file.chmod(mode)
        return found

    def write(self, name: str, text: str) -> None:
        """Put a file into the user's home folder."""
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def stop(self) -> None:
        """End it and take its files away."""
        super().stop()
        shutil.rmtree(self.root, ignore_errors=True)
