"""What a server's command line says: which program it is, its port, model, speculation, parallelism."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from specdash.monitor.foreign import decoded, figure, named
from specdash.monitor.numerals import whole

_SHELLS_AND_TOOLS = frozenset(
    "sh bash dash zsh fish csh tcsh ash busybox sudo su doas env nohup setsid timeout nice ionice taskset"
    " numactl chrt stdbuf script unbuffer watch xargs parallel time strace gdb ltrace perf py-spy ssh mosh"
    " tmux screen docker podman nerdctl kubectl srun mpirun torchrun systemd-run tee tail less more cat grep"
    " rg sed awk vi vim nvim nano emacs pgrep pkill ps top htop nvtop nvitop specdash curl wget git".split()
)
"""Programs whose arguments may name a server without being one: they start, show or look for it."""

_INTERPRETER = re.compile(r"^(?:python[\d.]*t?|pypy[\d.]*|uv|ray)$")
_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*m(?!-)(.*)", re.DOTALL)
"""Python's switch, alone, behind others (``-um``) or glued to its module."""


def program(argv: Sequence[str]) -> str:
    """The command line from the program's own name on, interpreter and its switches left out.

    ``python3 -u -m sglang.launch_server --tp 8`` becomes ``-m sglang.launch_server --tp 8``,
    ``/opt/venv/bin/python /opt/venv/bin/vllm serve M`` becomes ``vllm serve M``, a process title stays
    itself, and a shell or a tool that merely mentions a server becomes the empty string.
    """
    return _program(tuple(argv))


@lru_cache(maxsize=512)
def _program(argv: tuple[str, ...]) -> str:
    if not argv:
        return ""
    first = _basename(argv[0])
    if first in _SHELLS_AND_TOOLS:
        return ""
    if not _INTERPRETER.match(first):
        return " ".join((first if "/" in argv[0] else argv[0], *argv[1:]))
    rest = list(argv[1:])
    while rest:
        word = rest[0]
        module = _MODULE.match(word)
        if module and (module[1] or len(rest) > 1):
            return " ".join(filter(None, ("-m", module[1], *rest[1:])))
        if word == "-c":
            return " ".join(("-c", *rest[1:]))
        if word in ("-X", "-W"):
            rest = rest[2:]
        elif word.startswith("-"):
            rest = rest[1:]
        else:
            return " ".join((_script(word), *rest[1:]))
    return ""


def _script(path: str) -> str:
    """A file by its name; a module by its package, too (``sglang/launch_server.py``)."""
    parts = path.rstrip("/").split("/")
    return "/".join(parts[-2:]) if parts[-1].endswith(".py") else parts[-1]


def _basename(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


class LaunchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line tells; None where it does not."""

    port: int | None = None
    model: str | None = None
    speculation: str | None = None
    parallel: str | None = None
    ranks: int | None = None


def launch_facts(argv: Sequence[str]) -> LaunchFacts:
    """Read the flags that SGLang and vLLM share or have each for themselves."""
    return _launch_facts(tuple(argv))


@lru_cache(maxsize=512)
def _launch_facts(argv: tuple[str, ...]) -> LaunchFacts:
    port = whole(flag(argv, "--port", "--server-port", "-p"))
    port = port if port is not None and 0 < port < 65536 else None
    tp = whole(flag(argv, "--tp", "--tp-size", "--tensor-parallel-size", "-tp"))
    pp = whole(flag(argv, "--pp-size", "--pipeline-parallel-size", "-pp"))
    dp = whole(flag(argv, "--dp", "--dp-size", "--data-parallel-size", "-dp"))
    nodes = whole(flag(argv, "--nnodes", "-n")) or 1
    sizes = (("DP", dp), ("PP", pp), ("TP", tp))
    parallel = " ".join(f"{name}{size}" for name, size in sizes if size and size > 1) or None
    return LaunchFacts(
        port=port,
        model=flag(argv, "--served-model-name", "--model-path", "--model", "--model-id")
        or positional_model(argv),
        speculation=_speculation(argv),
        parallel=parallel,
        ranks=(tp or 1) * (pp or 1) * (dp or 1) // nodes if (tp or pp or dp) else None,
    )


def flag(argv: Sequence[str], *names: str) -> str | None:
    """The value of the last of these flags, in either form (``--port 1``, ``--port=1``)."""
    found = None
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            if equals:
                found = value
            elif index + 1 < len(argv) and not argv[index + 1].startswith("--"):
                found = argv[index + 1]
    return found


def given(argv: Sequence[str], name: str) -> bool:
    """This switch is on: ``--enforce-eager``, by its name in a dump of arguments."""
    dashed = f"--{name.replace('_', '-')}"
    return any(word in (dashed, f"{dashed}=True", f"{dashed}=true") for word in argv)


def positional_model(argv: Sequence[str]) -> str | None:
    """``vllm serve MODEL``: the word behind ``serve``."""
    for word, following in pairwise(argv):
        if word in ("serve", "api_server") and not following.startswith("-") and following != "api_server":
            return following
    return None


def _speculation(argv: Sequence[str]) -> str | None:
    algorithm = flag(argv, "--speculative-algorithm", "--spec-method")
    steps = flag(argv, "--speculative-num-steps", "--spec-tokens")
    config = flag(argv, "--speculative-config", "-sc")
    if config:
        given = decoded(config)
        if not isinstance(given, dict):
            return "speculation"
        algorithm = named(given.get("method")) or "draft"
        found = figure(given.get("num_speculative_tokens"))
        steps = None if found is None else f"{found:.0f}"
    if not algorithm:
        return None
    return f"{algorithm.upper()} {steps} steps" if steps else algorithm.upper()
