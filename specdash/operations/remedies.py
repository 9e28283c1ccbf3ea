"""Known fixes: what a diagnosis can be answered with, ready to be reviewed. Nothing is done here."""

from __future__ import annotations

import msgspec

from specdash.operations.acts import Hands
from specdash.operations.checks_model import context_of, text_config
from specdash.operations.commandline import read
from specdash.operations.modelfolder import read_config
from specdash.operations.work import Edit, Launch

OVERRIDE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One way to answer a diagnosis: change a file, or launch otherwise."""

    title: str
    says: str
    """What it means for the operator."""
    path: str | None = None
    edits: tuple[Edit, ...] = ()
    """With ``path``: for ``patch.prepare``."""
    env: dict[str, str] = {}
    """For the next launch."""

    @property
    def words(self) -> str:
        """The edits as ``patch`` takes them on a command line; empty where there are none."""
        return " ".join(f"{edit.key}={edit.value}" for edit in self.edits)


async def fixes(hands: Hands, diagnosis: str, launch: Launch) -> tuple[Fix, ...]:
    """The fixes for a diagnosis of a server that was started so; none where none is known.

    Raises ``RequestError`` where the host cannot be asked.
    """
    if diagnosis == "draft_context_mismatch":
        return await _draft_context(hands, launch)
    return ()


async def _draft_context(hands: Hands, launch: Launch) -> tuple[Fix, ...]:
    asked = read(launch)
    override = Fix(
        title=f"launch with {OVERRIDE}=1",
        says="the mismatch becomes a warning; acceptance may fall beyond the draft's own context",
        env={OVERRIDE: "1"},
    )
    if asked.draft is None or asked.model is None:
        return (override,)
    folder = asked.absolute(asked.draft)
    draft, _ = await read_config(hands, folder)
    target, _ = await read_config(hands, asked.absolute(asked.model))
    wanted = asked.context or (context_of(target) if target else None)
    if draft is None or wanted is None:
        return (override,)
    key = _key_of_context(draft)
    if key is None:
        return (override,)
    patch = Fix(
        title=f"patch {key} in the draft's config.json: {context_of(draft)} → {wanted}",
        says="one line, with a backup; undo takes it back",
        path=f"{folder}/config.json",
        edits=(Edit(key=key, value=str(wanted)),),
    )
    return (patch, override)


def _key_of_context(config: dict[str, object]) -> str | None:
    """Where the draft's context stands, if it is a plain number there."""
    inner = text_config(config)
    if not isinstance(inner.get("max_position_embeddings"), int) or isinstance(
        inner.get("rope_scaling"), dict
    ):
        return None
    prefix = next((f"{name}." for name, part in config.items() if part is inner), "")
    return f"{prefix}max_position_embeddings"
