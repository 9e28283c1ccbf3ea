"""What shall be launched: a server of the profile with a variant, or one that was found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from specdash.errors import SpecdashError
from specdash.operations.found import Found
from specdash.operations.journal import Journal
from specdash.operations.launch import FileChange, Wish
from specdash.operations.work import Check, Edit, How, Launch
from specdash.profile.document import Profile, Variant
from specdash.profile.document import Server as ProfileServer


def from_profile(
    name: str, server: ProfileServer, variant: Variant | None, last: str | None, key: str | None = None
) -> Wish:
    """The launch that a profile describes. A variant's flags come last: the last of a flag counts.

    ``key``: the variable under which its API key is found (``specdash.profile.keys``).
    """
    how, unit = launcher(server.launcher)
    launch = Launch(
        name=name,
        engine=server.engine,
        argv=(*server.command, *(variant.args if variant else ())),
        env={**server.env, **(variant.env if variant else {})},
        cwd=server.cwd,
        log=server.log or (f"/tmp/specdash-{name}.log" if how in ("process", "tmux") else None),
        user=server.user,
        how=how,
        unit=unit,
    )
    if variant is not None and how in ("systemd", "docker") and (variant.args or variant.env):
        raise SpecdashError(
            f"{name} is started by {server.launcher}: a variant's flags cannot reach it",
            "launch it as a process or in tmux",
        )
    return Wish(
        launch=launch,
        files=server.needs.files,
        key_env=key or server.api_key_env,
        last_good=last,
        changes=_changes(variant),
        otherwise=variant is not None,
    )


def _changes(variant: Variant | None) -> tuple[FileChange, ...]:
    if variant is None:
        return ()
    return tuple(FileChange(path=patch.file, edits=tuple(_edits(patch.set, ""))) for patch in variant.patches)


def patch_edits(values: Mapping[str, Any]) -> tuple[Edit, ...]:
    """``set`` of a profile's patch as edits of a file."""
    return tuple(_edits(values, ""))


def _edits(values: Mapping[str, Any], before: str) -> list[Edit]:
    """``set = { rope_scaling = { factor = 2 } }`` is the key ``rope_scaling.factor``."""
    found: list[Edit] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found.extend(_edits(value, f"{before}{key}."))
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found.append(Edit(key=f"{before}{key}", value=text))
    return found


def launcher(text: str) -> tuple[How, str | None]:
    """``systemd:UNIT`` → (``systemd``, ``UNIT``)."""
    kind, _, unit = text.partition(":")
    how: dict[str, How] = {"systemd": "systemd", "docker": "docker", "tmux": "tmux"}
    return how.get(kind, "process"), unit or None


def from_found(found: Found, last: str | None, variant: Variant | None = None) -> Wish:
    """The launch of a server as it was found."""
    launch = found.launch
    if variant is not None:
        argv, env = (*launch.argv, *variant.args), {**launch.env, **variant.env}
        launch = msgspec.structs.replace(launch, argv=argv, env=env)
    return Wish(
        launch=launch,
        last_good=last or found.version,
        missing=found.missing,
        changes=_changes(variant),
        otherwise=variant is not None,
    )


class NoVariant(SpecdashError):
    """A name that is none: as wrong as an option that is none."""

    exit_code = 2


def variant_of(profile: Profile, name: str | None) -> Variant | None:
    """A variant by its name. Raises ``NoVariant`` with the nearest right word."""
    if name is None:
        return None
    if name not in profile.variants:
        from specdash.wording import nearest

        known = ", ".join(profile.variants) or "it has none"
        hint = nearest(name, profile.variants).removeprefix("; ") or known
        raise NoVariant(f"the profile has no variant {name}", hint)
    return profile.variants[name]


def last_good(journal: Journal, target: str, engine: str) -> str | None:
    """The engine's version at the newest start on this host that came to a token."""
    for entry in journal.all():
        plan = entry.plan
        if plan.target != target or plan.kind not in ("launch", "restart") or not (plan.over and plan.ok):
            continue
        for step in plan.steps:
            version = step.result.get("version")
            if isinstance(step.work, Check) and step.work.launch.engine == engine and version:
                return str(version)
    return None
