"""From a step of a runbook to an operation's plan."""

from __future__ import annotations

from typing import Literal

import msgspec

from specdash.errors import SpecdashError
from specdash.monitor.state import Server
from specdash.operations import patch
from specdash.operations.acts import Acts
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan
from specdash.operations.which import NoServer, Wanted, choose
from specdash.operations.wishes import patch_edits
from specdash.profile.document import RunbookStep
from specdash.runbooks.observed import mine


class Nothing(SpecdashError):
    """There is nothing to do: it is so already, or there is no need."""

    def __init__(self, message: str, state: Literal["done", "skipped"] = "done") -> None:
        super().__init__(message)
        self.state: Literal["done", "skipped"] = state


async def prepare(operations: Operations, acts: Acts, spec: RunbookStep, wanted: str | None) -> Plan:
    """The plan of this step. Raises ``Nothing`` where none is needed, ``SpecdashError`` where none can be."""
    if spec.patch is not None:
        try:
            edits = patch_edits(spec.patch.set)
            return await patch.prepare(acts, spec.patch.file, edits, rules=operations.rules())
        except patch.NothingToDo:
            raise Nothing("the file has these values already") from None
    server = _server(acts, wanted)
    if spec.do == "kill":
        if server is None:
            raise SpecdashError("no server runs here")
        return (await operations.kill(server)).plan
    if spec.do == "clean":
        return (await operations.clean()).plan
    if spec.do == "patch":
        return await _fix(operations, acts, server)
    about = server if spec.do == "restart" and server is not None else _newest(acts, wanted)
    offer = await operations.restart(about, variant=spec.variant)
    if spec.force and offer.again is not None:
        offer = await offer.again(frozenset(spec.force))
    plan = offer.plan
    return plan if spec.do == "restart" else msgspec.structs.replace(plan, kind="launch")


def _server(acts: Acts, wanted: str | None) -> Server | None:
    try:
        return choose(acts.state.servers, Wanted.of(wanted))
    except NoServer:
        if wanted is not None and not mine(acts.state, wanted):
            raise  # another one is not what was asked for
        return None


def _newest(acts: Acts, wanted: str | None) -> Server | None:
    """Of the server that was named, whose start is looked for; None: of the host's own, whichever that is."""
    seen = mine(acts.state, wanted) if wanted is not None else ()
    return max(seen, key=lambda one: one.started_at, default=None)


async def _fix(operations: Operations, acts: Acts, server: Server | None) -> Plan:
    """The known fix of what went wrong last: of the living server, else of the newest that has ended."""
    ended = max(acts.state.servers, key=lambda one: one.started_at, default=None)
    about = server or ended
    if operations.fixable(about) is None:
        raise Nothing("nothing here needs a known fix", "skipped")
    try:
        return (await operations.patch(about)).plan
    except SpecdashError as error:
        if "in place already" in error.message:
            raise Nothing(error.message) from None
        raise
