"""What carries a link: SSH by asyncssh, by OpenSSH's own client, or a local pipe.

A transport opens one channel that runs the bootstrap; all the rest (frames, requests, reconnects) is the
same for every transport.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specdash.remote.asking import Prompter
from specdash.remote.bootstrap import Bootstrap
from specdash.remote.options import LinkOptions
from specdash.remote.target import Target
from specdash.remote.transport import Channel


class Transport(Protocol):
    """A way to one host."""

    async def open(self, boot: Bootstrap, ask: Prompter | None) -> Channel:
        """Connect and start the bootstrap's command.

        ``ask`` is None during an automatic reconnect: then nothing may be asked. Raises ``LinkError``.
        """

    def notices(self) -> list[str]:
        """Take what the operator should know although nothing failed: a key accepted, a key skipped."""


def transport_for(target: Target, options: LinkOptions, stage: Callable[[str], None]) -> Transport:
    """Choose the carrier. asyncssh is loaded only here, and only when it is the one."""
    if target.local or options.via_openssh:
        from specdash.remote.pipes import LocalTransport, OpenSshTransport

        return LocalTransport() if target.local else OpenSshTransport(target, options)
    from specdash.remote.ssh import SshTransport

    return SshTransport(target, options, stage)
