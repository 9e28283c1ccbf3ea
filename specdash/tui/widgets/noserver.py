"""What is said of a host on which no server runs: what is free there, and how one is started or found."""

from __future__ import annotations

from specdash.monitor.state import Gpu, HostState
from specdash.operations.offer import Known
from specdash.tui import say
from specdash.tui.paint import Row, Span, row
from specdash.tui.widgets.envtable import ranks_in_words
from specdash.tui.widgets.panelrows import Panel, key_rows, text_rows

FREE_MIB = 1024
"""A card without an owner on which less is used is free: what the driver keeps for itself."""
SOON_S = 5.0
"""What a host has not sent so long after it was connected is not just about to come."""


def no_server(state: HostState, *, acts: bool = False, starts: Known | None = "seen") -> Panel:
    """The host is well, and nothing serves."""
    if state.processes_at is None:
        return unlisted(state)

    def rows(width: int) -> list[Row]:
        out: list[Row] = []
        for words in held:
            out += text_rows(words, width, "orphan")
        out += _free(state, width)
        if out:
            out.append(())
        out += text_rows(_looked(state), width)
        out += text_rows("Start one: it appears here as soon as its process is seen.", width)
        out += text_rows("One that runs and is not found here: connect --log PATH follows its log.", width)
        if state.processes_denied:
            who = f"{say.plural(state.processes_denied, 'process', 'processes')} of other users"
            out += text_rows(
                f"{who} could not be read: connect as their user or as root to see them.", width, "dim"
            )
        out += _notes(state, width)
        clean = key_rows(("gpu.clean", "looks who holds it, and ends that")) if acts and held else []
        last = "starts the server of the profile" if starts == "profile" else "starts the last one again"
        again = key_rows(("server.restart", last)) if acts and starts else []
        return [*out, (), *clean, *again, *key_rows(("conn.retry", "looks again now"), ("quit", "quits"))]

    held = [words for gpu in state.gpus if (words := _left_behind(gpu))]
    hands = [id_ for id_, wanted in (("gpu.clean", held), ("server.restart", starts)) if acts and wanted]
    title = row(Span("no inference server is running here", "strong"))
    return Panel(title, rows, keys=(*hands, "conn.retry"))


def _left_behind(gpu: Gpu) -> str:
    """Memory of a card that clean can free, and who has it."""
    dead = next((owner for owner in gpu.owners if owner.ended), None)
    if gpu.orphan_mib:
        mib, who = gpu.orphan_mib, "no process that can be seen"
    elif dead is not None:
        mib, who = dead.mib or 0, f"what pid {dead.pid}, which has ended, forked"
    else:
        return ""
    return f"GPU {gpu.card.index}: {say.gib(mib)} GiB are held by {who}"


def _looked(state: HostState) -> str:
    age = say.age(state.now - state.processes_at) if state.processes_at is not None else "?"
    return f"Looked at every command line and process title {age} ago."


def _free(state: HostState, width: int) -> list[Row]:
    """Cards on which a server finds room; a card that cannot be read is none."""
    gpus = [
        gpu
        for gpu in state.gpus
        if gpu.card.used_mib is not None and not gpu.owners and not gpu.orphan_mib
        and gpu.card.used_mib < FREE_MIB and not gpu.card.error and not gpu.note
    ]  # fmt: skip
    if not gpus:
        return text_rows("No GPU is free.", width, "warn") if state.gpus else []
    totals = {say.gib(gpu.card.total_mib) for gpu in gpus}
    each = f", {totals.pop()} GiB{' each' if len(gpus) > 1 else ''}" if len(totals) == 1 else ""
    names = ranks_in_words([str(gpu.card.index) for gpu in gpus], 0)
    return text_rows(f"Free: GPU{'s' if len(gpus) > 1 else ''} {names}{each}", width)


def unlisted(state: HostState) -> Panel:
    """Whether there is a server cannot be said yet."""
    waited = state.now - state.link.since if state.link.since is not None else 0.0

    def rows(width: int) -> list[Row]:
        if waited < SOON_S:
            return []
        words = f"The host has not sent its list of processes for {say.age(waited)}: it is busy."
        return [*text_rows(words, width, "warn"), *_notes(state, width)]

    return Panel(row(Span("looking for inference servers", "dim")), rows)


def _notes(state: HostState, width: int) -> list[Row]:
    return [line for note in state.notes for line in text_rows(note, width, "dim")]
