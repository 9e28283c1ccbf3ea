"""``specdash bench``: how fast a server is, in numbers that can be believed."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import (
    EXIT_FAILED,
    NoConnection,
    Refused,
    acting_options,
    room,
    say,
    scene,
    show,
)
from specdash.commands.benchload import load_options, loads_of, script_of
from specdash.commands.benchtold import Lost, run_benchmark, say_next, table_lines
from specdash.commands.keeping import document, tell, word
from specdash.commands.numbers import Number
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

REPORT_S = 3.0
"""How long a server's first report of its queue is waited for."""

if TYPE_CHECKING:
    from specdash.bench.record import Measured
    from specdash.commands.acting import Scene
    from specdash.measuring.benchmark import Generator, Host
    from specdash.measuring.course import Course
    from specdash.monitor.state import Server


@click.command(short_help="How fast a server is; kept, so that it can be compared.")
@click.argument("target", metavar="TARGET|URL")
@load_options
@click.option("--claim", type=Number(0.001, 1e9), metavar="TOKS", help="What somebody says it reaches.")
@click.option("--campaign", metavar="V1,V2[,…]", help="Restart into each variant of the profile in turn.")
@click.option("--launches", type=click.IntRange(1, 20), default=2, metavar="N", help="Of each variant; 2.")
@click.option("--variant", metavar="NAME", help="What is special about this launch; else its speculation.")
@click.option("--name", metavar="NAME", help="What the runs are called in the history.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag for the runs; may be given again.")
@acting_options
def command(target: str, **given: Any) -> None:
    """Measure a server, and keep the figures in the history of this machine.

    \b
    What is measured where:
      TARGET  a host, as for ssh. Its server is found; the load is made on the
              host itself, so no network is in the figures. GPUs, speculation
              and the server's counters are looked at meanwhile.
      URL     http://host:port. The load is made on this machine: the network
              between is in every latency, and the host is not looked at.

    The load and what it costs is shown first. Ctrl-C stops it in order: nothing stays on the server, and what
    was measured is kept as a partial run. Repeat it five times to get an interval; specdash compare lays
    variants side by side. Exit code 1: a run does not count or was not kept, or none was made; 3: nobody
    answers at the URL.

    \b
    Examples:
      specdash bench gpubox --output 512 --repeat 5
      specdash bench http://127.0.0.1:8000 --concurrency 1,8,64 --variant eagle3-3
      specdash bench gpubox --campaign baseline,eagle3-2,eagle3-3 --repeat 3
    """
    if given["watch"]:
        raise Refused("bench loads the server, and --watch never does")
    for name in ("variant", "name"):
        given[name] = word(given[name]) if given[name] is not None else None
    given["tags"] = tuple(map(word, given["tags"]))
    if given["campaign"] is not None:
        from specdash.commands.campaign import campaign

        if "://" in target:
            raise click.UsageError("--campaign restarts the server: give the host, not a URL")
        if given["variant"] is not None or given["claim"] is not None:
            raise click.UsageError("--campaign names its variants itself, and takes no --claim")
        sys.exit(asyncio.run(campaign(target, given)))
    measure = _measure_url if "://" in target else _measure_host
    sys.exit(asyncio.run(measure(target, given)))


async def _measure_host(target: str, given: dict[str, Any]) -> int:
    from specdash.commands.carrying import link_is_lost
    from specdash.measuring.course import Course, beforehand, counted, subject_of, url_of
    from specdash.measuring.leftover import Leftovers
    from specdash.measuring.onhost import HostGenerator
    from specdash.operations.which import of_profile
    from specdash.profile.keys import key_variable
    from specdash.profile.loading import load

    profile = load(given["profile"])
    loads_of("host:1", given, profile)  # what is wrong with the options is said before any connection
    named = profile.host_of(target)
    if named is not None and named[1].watch:
        raise Refused(f"bench loads the server, and the profile says watch = true for {named[0]}")
    async with scene(target, given) as here:
        server = here.server()
        known = of_profile(profile, here.host_name, server)
        if known is not None and given["key_env"] is None:
            given["key_env"] = key_variable(profile, known)
        loads, repeat = loads_of(url_of(server), given, profile, counters=counted(server))
        subject = subject_of(here.state, server, variant=given["variant"])
        course = Course(subject=subject, loads=loads, repeat=repeat)
        own = script_of(given, profile)
        if own is not None:
            course = Course(subject=subject, loads=(), script=own[0], repeat=own[1])
        leftovers = Leftovers(here.state.target)
        generator = HostGenerator(here.session, server.key, leftovers)
        return await carry_out(
            course,
            generator,
            given,
            host=here.session,
            lost=lambda: link_is_lost(here),
            server=(server := await _reported(here, server)),
            warnings=beforehand(server, here.state.now, cut_off=any(leftovers.runs())),
        )


async def _reported(here: Scene, server: Server) -> Server:
    """The server with what it says of its queue, which comes a moment after it was found."""
    from specdash.measuring.course import reported

    for _ in range(int(REPORT_S / 0.1)):
        server = next((one for one in here.state.servers if one.key == server.key), server)
        if reported(server, here.state.now) or server.gone_at is not None:
            break
        await asyncio.sleep(0.1)
    return server


async def _measure_url(target: str, given: dict[str, Any]) -> int:
    from specdash.measuring.course import Course, Subject, busy
    from specdash.measuring.local import LocalGenerator
    from specdash.measuring.looking import look

    profile = _profile(given)
    loads, repeat = loads_of(target, given, profile)
    if script_of(given, profile) is not None:
        raise click.UsageError("a command of your own runs on a host: name the host, not a URL")
    if given["key_env"] is not None and not os.environ.get(given["key_env"], "").strip():
        raise click.UsageError(f"--key-env: the variable {given['key_env']} is not set here: export it")
    looked = await look(loads[0])
    if looked.error is not None:
        said = f"nobody answers at {loads[0].url}: {looked.error}"
        raise NoConnection(said, "is the server up, and is this its port?")
    if not looked.counters:
        loads, repeat = loads_of(target, given, profile, counters=False)
    variant = given["variant"] or looked.variant or ("speculation" if looked.speculates else "baseline")
    subject = Subject(
        host=loads[0].url,
        name=loads[0].url,
        place="on this machine",
        variant=variant,
        launch=looked.launch,
        model=loads[0].model or looked.model,
        host_name="this machine",
    )
    course = Course(subject=subject, loads=loads, repeat=repeat)
    facts, warnings = dict(looked.fingerprint), busy(looked.running)
    return await carry_out(course, LocalGenerator(), given, fingerprint=facts, warnings=warnings)


def _profile(given: dict[str, Any]) -> Any:
    from specdash.profile.loading import load

    return load(given.get("profile")) if given.get("benchmark") else None


async def carry_out(
    course: Course,
    generator: Generator,
    given: dict[str, Any],
    *,
    host: Host | None = None,
    fingerprint: dict[str, str] | None = None,
    lost: Lost | None = None,
    server: Server | None = None,
    warnings: Sequence[str] = (),
) -> int:
    """Show it, ask, measure, keep, tell. Returns the exit code.

    ``lost``: ends with the reason once the link is given up. ``server``: as the ``host`` just sees it.
    ``warnings``: shown with the plan.
    """
    from specdash.commands.carrying import confirm, shown
    from specdash.measuring.benchmark import Benchmark
    from specdash.measuring.course import plan, unanswered
    from specdash.measuring.keeping import Keeper
    from specdash.measuring.lasting import how_long
    from specdash.operations.plan import as_json

    keeper = Keeper(lambda words: say(clean_line(f"▲ {words}")), name=given["name"] or "", tags=given["tags"])
    known = await asyncio.to_thread(keeper.known)
    now = host.state.now if host is not None else 0.0
    lasts = partial(how_long, course, known=known, server=server, now=now)
    refusal = unanswered(server) if server is not None else None
    what = plan(course, made=time.time(), warnings=warnings, lasts=lasts, refusal=refusal)
    show(shown(what, room(given)), given)
    if given["dry_run"]:
        if given["json"]:
            click.echo(as_json(what))
        return EXIT_FAILED if refusal else 0
    if refusal:
        raise SpecdashError(refusal)
    if (trouble_there := await asyncio.to_thread(keeper.trouble)) is not None:
        say(clean_line(f"  ▲ nothing of this will be kept: {trouble_there}"))
    await confirm(what, yes=given["yes"])
    benchmark = Benchmark(
        course, generator, keep=keeper.keep, host=host, known=known, fingerprint=fingerprint
    )
    trouble: SpecdashError | None = None
    try:
        await run_benchmark(benchmark, lost)
    except SpecdashError as error:
        trouble = error
    runs = benchmark.progress.done
    if runs and given["claim"] is not None:
        keeper.claim(course, given["claim"])
    _tell_end(runs, keeper.known(), as_document=given["json"])
    if trouble is not None:
        raise trouble
    return EXIT_FAILED if not runs or any(run.trouble or run.id is None for run in runs) else 0


def _tell_end(runs: Sequence[Measured], known: Sequence[Measured], *, as_document: bool) -> None:
    """The runs, and beside them what is known of the same host under the same loads."""
    from specdash.bench.export import plain

    if as_document:
        document({"runs": [plain(run) for run in runs]})
    else:
        tell(iter(table_lines(runs, known)))
        say_next(runs)
