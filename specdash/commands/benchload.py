"""The options that say what a benchmark asks of a server, and the workloads they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from specdash.commands.numbers import Number

if TYPE_CHECKING:
    from specdash.bench.plan import Workload
    from specdash.measuring.course import Script

_F = TypeVar("_F", bound=Callable[..., Any])
OUTPUT = 256
"""32 requests of so many tokens are the 8,000 tokens that a run should have at least."""

_OPTIONS = (
    click.option("--benchmark", metavar="NAME", help="A benchmark of the profile; options override it."),
    click.option("--model", metavar="M", help="The model to ask; else the first one that the server lists."),
    click.option("--api", type=click.Choice(("chat", "completions")), help="Which API; chat by default."),
    click.option("--concurrency", metavar="N[,N…]", help="Streams at once; several: one measurement each."),
    click.option("--rate", type=Number(1e-4, 1e5), metavar="R", help="Requests a second instead, Poisson."),
    click.option(
        "--requests", type=click.IntRange(1), metavar="N", help="Measured in a run; else 32, or 4 a stream."
    ),
    click.option("--duration", type=Number(0.1, 604_800), metavar="S", help="Send no more after so long."),
    click.option("--input", type=click.IntRange(1), metavar="TOKENS", help="Length of prompts; 128."),
    click.option("--output", type=click.IntRange(1), metavar="TOKENS", help=f"Length of answers; {OUTPUT}."),
    click.option("--prompts", metavar="FILE", help="JSON lines or ShareGPT, where the load comes from."),
    click.option("--temperature", type=Number(0, 100), metavar="T", help="0 by default."),
    click.option("--eos", is_flag=True, help="Let answers end where the model ends them."),
    click.option("--key-env", metavar="NAME", help="The variable that holds the API key, never the key."),
    click.option("--insecure", is_flag=True, help="Do not check the certificate of an https server."),
    click.option("--warmup", type=click.IntRange(0), metavar="N", help="Requests before; twice the streams."),
    click.option("--seed", type=click.IntRange(0), metavar="N", help="Of prompts and arrivals; 0."),
    click.option("--timeout", type=Number(0.01, 86_400), metavar="S", help="For one request; 600."),
    click.option("--repeat", type=click.IntRange(1, 100), metavar="N", help="Runs of each; 1, better 5."),
)


def load_options(command: _F) -> _F:
    """Add them to a command; it gets them by name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def loads_of(
    url: str, given: Mapping[str, Any], profile: Any = None, *, counters: bool = True
) -> tuple[tuple[Workload, ...], int]:
    """The workloads, one for each concurrency, and how often. Raises ``UsageError`` or ``WorkloadError``.

    ``counters``: the server's may be read.
    """
    from specdash.bench.plan import parse, sweep

    named = _named(given.get("benchmark"), profile)
    streams = _streams(given.get("concurrency")) or tuple(named.pop("concurrency", ()) or ())
    named.pop("concurrency", None)
    repeat = given.get("repeat") or named.pop("repeat", None) or 1
    named.pop("repeat", None)
    wanted = {"output": OUTPUT, **named, **_said(given), "url": url, "counters": counters}
    load = parse(wanted)
    if load.rate is not None and len(streams) > 1:
        raise click.UsageError("--rate takes one --concurrency at most: the most requests at once")
    if load.rate is not None:
        return (parse({**wanted, "concurrency": streams[0] if streams else None}),), repeat
    return sweep(load, streams or (1,), exactly="requests" in wanted), repeat


def script_of(given: Mapping[str, Any], profile: Any) -> tuple[Script, int] | None:
    """The profile's own command that was named, and how often; None where ours is meant."""
    from specdash.measuring.course import Script

    found = profile.benchmarks.get(given.get("benchmark")) if profile is not None else None
    if found is None or found.command is None:
        return None
    script = Script(command=tuple(found.command), tok_s=found.tok_s)
    return script, given.get("repeat") or found.repeat or 1


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    names = "model api rate requests duration input output prompts temperature key_env warmup seed timeout"
    said = {name: given[name] for name in names.split() if given.get(name) is not None}
    if given.get("eos"):
        said["ignore_eos"] = False
    if given.get("insecure"):
        said["tls_verify"] = False
    return said


def _streams(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise click.BadParameter(f"{text!r} is no list of numbers above 0", param_hint="--concurrency")
    return tuple(dict.fromkeys(int(word) for word in words))


def _named(name: str | None, profile: Any) -> dict[str, Any]:
    """The profile's own benchmark as plain values. Raises ``UsageError`` where there is none."""
    if name is None:
        return {}
    found = profile.benchmarks.get(name) if profile is not None else None
    if found is None:
        known = ", ".join(profile.benchmarks) if profile is not None and profile.benchmarks else "none"
        raise click.UsageError(f"the profile has no benchmark {name} (it has: {known})")
    names = "concurrency requests input output repeat rate api".split()
    return {field: value for field in names if (value := getattr(found, field)) not in (None, ())}
