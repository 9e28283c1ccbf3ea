"""What a launch's command line and environment ask for, as far as a preflight needs it."""

from __future__ import annotations

import json
import posixpath

import msgspec

from specdash.monitor.commandline import flag, launch_facts
from specdash.operations.acts import Hands
from specdash.operations.work import Launch

_TRUE = frozenset({"1", "true", "yes", "y", "on"})
_DEFAULT_PORTS = {"sglang": 30000, "vllm": 8000}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch wants."""

    launch: Launch
    port: int | None
    rendezvous: tuple[int, ...]
    """Ports on which the ranks meet, where they are given."""
    ranks: int | None
    model: str | None
    """A path, or a name on the Hugging Face hub."""
    draft: str | None
    method: str
    context: int | None
    dummy: bool
    """No weights are read."""
    stretched: bool
    """A draft with a shorter context is allowed by the environment."""

    async def python(self, hands: Hands) -> str | None:
        """The interpreter that will run it: the first word, or what the first word's script names."""
        first = self.launch.argv[0]
        paths = [first] if "/" in first else self._on_path(first)
        if not paths:
            return first if posixpath.basename(first).startswith("python") else None
        for stat in await hands.stat_files(paths, head=256):
            if not stat.exists:
                continue
            if posixpath.basename(first).startswith("python"):
                return stat.path
            line = stat.first.split(b"\n", 1)[0]
            if line.startswith(b"#!"):
                words = line[2:].decode("utf-8", "replace").split()
                return (
                    words[-1] if words and posixpath.basename(words[0]) == "env" else next(iter(words), None)
                )
        return None

    def _on_path(self, name: str) -> list[str]:
        """Where its own PATH finds a program; empty where that is not known."""
        path = self.launch.env.get("PATH")
        return [f"{folder}/{name}" for folder in path.split(":") if folder] if path else []

    def absolute(self, path: str) -> str:
        """A path as the server sees it."""
        return posixpath.normpath(posixpath.join(self.launch.cwd or "/", path))


def read(launch: Launch) -> Asked:
    """Read the flags that SGLang and vLLM have each for themselves."""
    argv = launch.argv
    facts = launch_facts(argv)
    method, draft = _speculation(launch)
    context = flag(argv, "--context-length", "--max-model-len")
    return Asked(
        launch=launch,
        port=facts.port or (_DEFAULT_PORTS.get(launch.engine) if argv else None),
        rendezvous=_rendezvous(launch),
        ranks=facts.ranks,
        model=_model(launch),
        draft=draft,
        method=method,
        context=int(context) if context and context.isdecimal() else None,
        dummy=flag(argv, "--load-format") == "dummy",
        stretched=launch.env.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() in _TRUE,
    )


def _model(launch: Launch) -> str | None:
    given = flag(launch.argv, "--model-path", "--model")
    if given:
        return given
    for word, following in zip(launch.argv, launch.argv[1:], strict=False):
        if word == "serve" and not following.startswith("-"):
            return following
    return None


def _speculation(launch: Launch) -> tuple[str, str | None]:
    """Method and draft."""
    argv = launch.argv
    config = flag(argv, "--speculative-config", "-sc")
    if config:
        try:
            given = json.loads(config)
        except ValueError:
            return "", None
        model = given.get("model") if isinstance(given, dict) else None
        return (
            (str(given.get("method", "")), model if isinstance(model, str) else None) if model else ("", None)
        )
    method = flag(argv, "--speculative-algorithm", "--spec-method") or ""
    draft = flag(argv, "--speculative-draft-model-path", "--speculative-draft-model", "--spec-model")
    return method.lower(), draft


def _rendezvous(launch: Launch) -> tuple[int, ...]:
    told = (
        flag(launch.argv, "--nccl-port"),
        flag(launch.argv, "--master-port"),
        (flag(launch.argv, "--dist-init-addr") or "").rpartition(":")[2],
    )
    numbers = (int(text) for text in told if text and text.isdecimal())
    return tuple(dict.fromkeys(number for number in numbers if 0 < number < 65536))
