"""A first profile, written from what runs on a host: commented, checked, and without any secret.

Examples stand in it as ``#key = …``, words of explanation as ``# words``: taking the ``#`` off an example
always gives a profile that passes ``specdash config check``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

import msgspec

from specdash.monitor.environment import INTERESTING
from specdash.monitor.state import HostState, Server
from specdash.operations import toml
from specdash.operations.found import Found
from specdash.operations.scrub import argv_without_secrets, value_without_secret
from specdash.operations.work import Launch
from specdash.remote.target import parse_target
from specdash.sanitise import REDACTED, clean_line

MOST_FILES = 8
STEERS = (*INTERESTING, "PYTORCH_")
"""Beginnings of the variables that belong to a start."""
BELONG = (
    *("HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "OMP_NUM_THREADS", "PYTHONPATH", "TRITON_CACHE_DIR"),
)
"""Others that it needs: where models and compiled kernels lie, and whether the network may be asked."""
_KEY_NAMES = {"vllm": "VLLM_API_KEY", "sglang": "SGLANG_API_KEY"}
_SECRET_NAME = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|PASSWORD|PASSWD|SECRET|KEY|PWD|PASS)$", re.IGNORECASE)


class Drafted(msgspec.Struct, frozen=True, kw_only=True):
    """One server that was found, and what belongs to it."""

    server: Server
    found: Found | None
    """How it was started; None where that could not be read."""
    gone: bool = False
    """Its main process had ended: what was seen is what it left, or nothing any more."""
    files: tuple[str, ...] = ()
    """Of the paths on its command line those that are there."""


def paths_of(argv: Sequence[str], log: str | None) -> tuple[str, ...]:
    """What on a command line may be a file that a launch needs: absolute paths, each once."""
    words = (word.partition("=")[2] if word.startswith("--") and "=" in word else word for word in argv[1:])
    found = (word for word in words if word.startswith("/") and word != log and word.isprintable())
    return tuple(dict.fromkeys(word for word in found if REDACTED not in word))[:MOST_FILES]


def draft(state: HostState, target: str, servers: Sequence[Drafted], day: str, reached: str = "") -> str:
    """The text of the profile. ``reached``: the options that the connection needed."""
    host = _host_name(state, target)
    lines = [*_head(state, target, day), "schema = 1", "", *_host(host, target, reached)]
    names: list[str] = []
    for drafted in servers:
        name = _server_name(drafted.server, names, alone=len(servers) == 1)
        names.append(name)
        lines += ["", *_server(name, host, drafted)]
    if not servers:
        lines += ["", *_no_server(host, state)]
    whole = ((name, one) for name, one in zip(names, servers, strict=True) if not _why_unknown(one))
    lines += ["", *_examples(host, next(whole, None), several=len(servers) > 1)]
    return "\n".join(lines) + "\n"


def left_out(drafted: Drafted) -> tuple[str, ...]:
    """What of a server is not in the profile, each a sentence for the operator."""
    found, why = drafted.found, _why_unknown(drafted)
    told = list(found.missing) if found else []
    if why and not any(words.startswith("its command line") for words in told):
        told.insert(0, f"how it was started: {why}")
    if found is None:
        return tuple(told)
    if REDACTED in " ".join(argv_without_secrets(found.launch.argv)):
        told.append("a key on its command line: a launch from here starts without it")
    told += [f"{name} in its environment is a secret: export it" for name in _secrets(found.launch)]
    return tuple(clean_line(words) for words in told)


def _why_unknown(drafted: Drafted) -> str:
    """Why its command line cannot stand in the file; empty where it does."""
    if drafted.gone:
        return "its main process had ended"
    argv = _argv(drafted.found.launch.argv) if drafted.found else ()
    if not argv:
        return "its command line could not be read"
    return "" if all(map(toml.writable, argv)) else "its command line has bytes that are no text"


def _head(state: HostState, target: str, day: str) -> Iterator[str]:
    yield f"# Written by `specdash init {clean_line(target)}` on {day} from what ran there."
    cards: dict[str, int] = {}
    for gpu in state.gpus:
        name = clean_line(gpu.card.name or "GPU")
        cards[name] = cards.get(name, 0) + 1
    if cards:
        driver = f", driver {clean_line(state.driver)}" if state.driver else ""
        yield f"# {', '.join(f'{number} × {name}' for name, number in cards.items())}{driver}"
    yield "# No key, token or password stands in it, and none may."
    yield "# Every key: specdash help profile. After a change: specdash config check"
    yield ""


def _host_name(state: HostState, target: str) -> str:
    where = parse_target(target)
    if where.local or not state.host:
        return where.host
    try:
        ipaddress.ip_address(where.host)
    except ValueError:
        return where.host
    return clean_line(state.host.name).split(".")[0] or where.host


def _host(host: str, target: str, reached: str) -> Iterator[str]:
    yield f"[hosts.{toml.key(host)}]"
    yield f"target = {toml.text(target)}"
    if reached:
        yield f"# It was reached with {reached}"
        yield "# Give that each time, or write it into ~/.ssh/config."
    yield "# true: what changes it needs the host's name typed."
    yield "#production = true"
    yield "# true: only look; no key that changes anything."
    yield "#watch = true"
    yield "# Where the server lives in a container: the machine outside, for clean."
    yield f"#cleanup_via = {toml.text('root@hypervisor')}"


def _server_name(server: Server, taken: Sequence[str], *, alone: bool) -> str:
    if alone:
        return "main"
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", server.name) or "server"
    number = sum(other == name or other.startswith(f"{name}-") for other in taken)
    return name if name not in taken else f"{name}-{number + 1}"


def _server(name: str, host: str, drafted: Drafted) -> Iterator[str]:
    server, found = drafted.server, drafted.found
    about = (
        server.name,
        "" if drafted.gone else f"pid {server.pid}",
        "had ended" if drafted.gone else server.state,
        server.model,
        server.speculation,
        server.parallel,
    )
    yield f"# {clean_line(' · '.join(word for word in about if word))}"
    for words in left_out(drafted):
        yield f"# Not here: {words}"
    if found is None or _why_unknown(drafted):
        yield f"# {'Write this anew once it runs again, or fill in:' if drafted.gone else 'Fill in:'}"
        yield from _example_server(name, host, server.engine)
        return
    launch = found.launch
    argv = _argv(launch.argv)
    yield f"[servers.{toml.key(name)}]"
    yield f"host = {toml.text(host)}"
    yield f"engine = {toml.text(server.engine)}"
    yield "# process | systemd:UNIT | docker:NAME | tmux:SESSION"
    yield f"launcher = {toml.text(_launcher(launch))}"
    yield from toml.array("command", _grouped(argv))
    for key, value in (("cwd", launch.cwd), ("log", launch.log), ("user", launch.user)):
        if value and toml.writable(value):
            yield f"{key} = {toml.text(value)}"
    yield from _api_key(server.engine, launch)
    yield from _environment(name, launch, argv)
    files = [path for path in drafted.files if toml.writable(path)]
    if files:
        yield f"[servers.{toml.key(name)}.needs]"
        yield "# A launch is refused while one of these is missing."
        yield from toml.array("files", [[path] for path in files])


def _argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Without secrets and the flags that they stood behind."""
    kept: list[str] = []
    for word in argv_without_secrets(argv):
        if REDACTED not in word:
            kept.append(word)
        elif not word.startswith("-") and kept and kept[-1].startswith("-"):
            kept.pop()
    return tuple(kept)


def _launcher(launch: Launch) -> str:
    fits = launch.unit is not None and re.fullmatch(r"[\w.@:-]+", launch.unit)
    return f"{launch.how}:{launch.unit}" if fits else "process"


def _secrets(launch: Launch) -> list[str]:
    """Names of the variables that hold keys; no value is looked at twice."""
    told = (
        n for n, v in launch.env.items() if _SECRET_NAME.search(n) or value_without_secret(n, v) == REDACTED
    )
    return sorted(name for name in told if re.fullmatch(r"[A-Za-z_]\w*", name))


def _api_key(engine: str, launch: Launch) -> Iterator[str]:
    known = [name for name in _secrets(launch) if name in _KEY_NAMES.values()]
    name = known[0] if known else _KEY_NAMES.get(engine, "API_KEY")
    hash_ = "" if known or REDACTED in " ".join(argv_without_secrets(launch.argv)) else "#"
    yield "# The variable, on the host, that holds the API key; never the key."
    yield f"{hash_}api_key_env = {toml.text(name)}"


def _environment(name: str, launch: Launch, argv: Sequence[str]) -> Iterator[str]:
    secret = set(_secrets(launch))
    bare = bool(argv) and "/" not in argv[0]
    steers = {
        key: value
        for key, value in sorted(launch.env.items())
        if key.startswith(STEERS) or key in BELONG or (bare and key == "PATH")
        if key not in secret and toml.writable(value)
    }
    if not steers:
        return
    yield f"[servers.{toml.key(name)}.env]"
    if "PATH" in steers:
        yield f"# PATH: {clean_line(argv[0])} was found by it."
    for key, value in steers.items():
        yield f"{toml.key(key)} = {toml.text(value)}"


def _no_server(host: str, state: HostState) -> Iterator[str]:
    yield "# No server ran when this was written. Start one and write this anew, or fill in:"
    for server in state.servers:
        if server.processes:
            yield f"# Processes of one that had ended, {clean_line(server.name)}, were left."
    yield from _example_server("main", host, "sglang")


def _example_server(name: str, host: str, engine: str) -> Iterator[str]:
    module = '"vllm", "serve", "/models/target"' if engine == "vllm" else _SGLANG
    yield f"#[servers.{toml.key(name)}]"
    yield f"#host = {toml.text(host)}"
    yield f"#engine = {toml.text(engine)}"
    yield f"#command = [{module}]"
    yield f"#log = {toml.text(f'/var/log/{engine}.log')}"


_SGLANG = '"python3", "-m", "sglang.launch_server", "--model-path", "/models/target", "--port", "30000"'


def _examples(host: str, first: tuple[str, Drafted] | None, *, several: bool) -> Iterator[str]:
    """``first``: the first server that stands in the file, and its name there."""
    where = clean_line(host)
    if first is not None:
        server, drafted = first
        where += f" --server {server}" if several else ""
        argv = drafted.found.launch.argv if drafted.found else ()
        name, args = _variant(drafted.server.engine, argv)
        yield "# A named change of a launch; its flags come last, and win:"
        yield f"# specdash restart {where} --variant {name}"
        yield f"#[variants.{name}]"
        yield f"#server = {toml.text(server)}"
        yield f"#args = [{', '.join(map(toml.text, args))}]"
        yield ""
    yield f"# specdash bench {where} --benchmark short"
    yield "#[benchmarks.short]"
    yield "#concurrency = [1]"
    yield "#requests = 16"
    yield "#input = 128"
    yield "#output = 512"
    yield "#repeat = 5"
    yield ""
    yield f"# specdash runbook {clean_line(host)} until-ready; steps: specdash help runbooks"
    yield "#[runbooks.until-ready]"
    yield """#steps = [{ wait = "state == 'ready'", within = "30m" }, { notify = "ready" }]"""
    yield ""
    yield "# Told outside the terminal; the address is a secret: its variable is named."
    yield "#[notify.pager]"
    yield '#url_env = "SPECDASH_PAGER"'
    yield f"#hosts = [{toml.text(host)}]"


def _variant(engine: str, argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if "--speculative-num-steps" in argv:
        return "steps-2", ("--speculative-num-steps", "2")
    if engine == "vllm":
        return "less-memory", ("--gpu-memory-utilization", "0.85")
    return "less-memory", ("--mem-fraction-static", "0.8")


# ---------------------------------------------------------------------- TOML


def _grouped(argv: Sequence[str]) -> list[list[str]]:
    """A flag and what stands behind it share a line."""
    rows: list[list[str]] = []
    for word in argv:
        if word.startswith("--") or not rows:
            rows.append([word])
        else:
            rows[-1].append(word)
    return rows
