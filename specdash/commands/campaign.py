"""``specdash bench TARGET --campaign V1,V2,…``: restart into each variant in turn, measure, and compare."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import EXIT_FAILED, Refused, Scene, desk_of, room, say, scene, show
from specdash.commands.benchload import loads_of, script_of
from specdash.commands.benchtold import run_benchmark, say_next, table_lines
from specdash.commands.keeping import document
from specdash.commands.targets import called
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.bench.plan import Workload
    from specdash.bench.record import Measured
    from specdash.measuring.campaign import Place
    from specdash.measuring.keeping import Keeper
    from specdash.operations.plan import Plan


async def campaign(target: str, given: dict[str, Any]) -> int:
    """Show it, ask once, carry it out from where it was cut off. Returns the exit code."""
    from specdash.measuring.campaign import name_of, order, unfinished
    from specdash.measuring.keeping import Keeper
    from specdash.operations.wishes import variant_of
    from specdash.profile.loading import load

    profile = load(given["profile"])
    named = profile.host_of(target)
    if named is not None and named[1].watch:
        raise Refused(f"bench restarts the server, and the profile says watch = true for {named[0]}")
    variants = [word.strip() for word in given["campaign"].split(",") if word.strip()]
    if len(variants) < 2 or len(set(variants)) < len(variants):
        raise click.UsageError("--campaign takes two variants or more, each once")
    for name in variants:
        variant = variant_of(profile, name)
        if variant is not None and variant.patches:
            raise SpecdashError(
                f"{name} patches files, and a campaign does not take patches back between its launches",
                f"specdash restart {called(target, given)} --variant {name}, then bench, measures it alone",
            )
    loads, repeat = loads_of("host:1", given, profile)
    if script_of(given, profile) is not None:
        raise click.UsageError("a campaign measures by the built-in load, not by a command of your own")
    stages = order(variants, given["launches"])
    keeper = Keeper(_complain, name=given["name"] or "")
    name = name_of(target, variants, loads, repeat, given["launches"], given["server"])
    if (trouble := await asyncio.to_thread(keeper.trouble)) is not None:
        raise SpecdashError(f"a campaign lives on what it keeps, and nothing can be kept: {trouble}")
    known = await asyncio.to_thread(keeper.known)
    tag, here = unfinished(known, name, stages, len(loads), repeat)
    keeper.tags = (*given["tags"], tag)
    async with scene(target, given, outside=True) as place:
        work = Campaign(place, stages, loads, repeat, keeper, tag)
        return await work.run(here)


def _complain(words: str) -> None:
    say(clean_line(f"▲ {words}"))


class Campaign:
    """One campaign on one host."""

    def __init__(
        self,
        here: Scene,
        stages: Sequence[str],
        loads: Sequence[Workload],
        repeat: int,
        keeper: Keeper,
        tag: str,
    ) -> None:
        self._here, self._stages, self._loads, self._repeat = here, stages, loads, repeat
        self._keeper, self._tag = keeper, tag
        self._agreed = False

    async def run(self, place: Place) -> int:
        """From this place to its end."""
        from specdash.operations.plan import as_json

        runs, given = place.runs, self._here.given
        first = None if self._lives(place) else await self._restart_plan(place.stage)
        show(self._shown(place, first), given)
        if given["dry_run"]:
            if given["json"] and first is not None:
                click.echo(as_json(first))
            elif given["json"]:
                document({"plan": (), "ok": True})
            return EXIT_FAILED if first is not None and first.refusal else 0
        await self._agree(first)
        for stage in range(place.stage, len(self._stages)):
            variant = self._stages[stage]
            say(f"launch {stage + 1} of {len(self._stages)}: {clean_line(variant)}")
            if not (stage == place.stage and self._lives(place)):
                runs = 0
                await self._restart(first if stage == place.stage else None, stage)
            await self._measure(variant, self._repeat - runs)
            runs = 0
            for line in table_lines(self._mine(), self._keeper.known()):
                say(clean_line(line))
        mine = self._mine()
        if given["json"]:
            from specdash.bench.export import plain

            document({"campaign": self._tag, "runs": [plain(run) for run in mine]})
        else:
            for line in table_lines(mine, self._keeper.known()):
                click.echo(clean_line(line))
            say_next(mine)
        return EXIT_FAILED if any(run.trouble for run in mine) else 0

    def _shown(self, place: Place, first: Plan | None) -> list[str]:
        from specdash.commands.carrying import shown
        from specdash.measuring.course import load_words
        from specdash.monitor.spans import count

        space = room(self._here.given)
        names, many = ", ".join(dict.fromkeys(self._stages)), len(self._stages)
        out = [f"campaign on {self._here.state.target}: {names} ({self._tag})"]
        begun = first is not None and first.begun
        if place.stage or place.runs or begun:
            out.append(f"  it was cut off and goes on with launch {place.stage + 1} of {many}")
        left = enumerate(self._stages[place.stage :], place.stage + 1)
        if first is None:
            number, name = next(left)
            out.append(f"  {number} {name} runs still: {count(self._repeat - place.runs, 'run')} more")
        runs = count(self._repeat, "run")
        out += [f"  {number} restart into {name}, one token, {runs}" for number, name in left]
        out += [f"    each run: {load_words(load)}" for load in self._loads]
        if begun:
            out += ["", "its server was started already and is not started again:"]
        elif first is not None:
            out += ["", "the first of these restarts, literally:"]
        out += [f"  {line}" for line in shown(first, space and space - 2)] if first is not None else []
        return out

    async def _agree(self, first: Plan | None) -> None:
        """One yes for all of it: the later restarts do the same to the same server."""
        from specdash.commands.carrying import agree, confirm

        yes = bool(self._here.given["yes"])
        if first is None:
            await agree("the campaign", yes=yes)
            return
        if first.refusal:
            raise SpecdashError(first.refusal)
        await confirm(first, yes=yes)

    async def _restart_plan(self, stage: int) -> Plan:
        """Of this stage: what was begun of it and cut off goes on, else a new one."""
        import msgspec

        from specdash.measuring.restarting import attempt, goes_on

        here = self._here
        fresh, last = attempt(self._tag, stage, here.journal.read)
        if (again := goes_on(last, fresh, here.state)) is not None:
            return again
        if last is not None and not last.ended and not here.given["dry_run"]:
            here.journal.abandon(last.plan, f"for {fresh}")
        plan = await self._new_plan(self._stages[stage])
        return msgspec.structs.replace(plan, id=fresh)

    async def _new_plan(self, variant: str) -> Plan:
        from specdash.commands.restart import prepare
        from specdash.commands.wishing import wish_to_launch
        from specdash.operations import launch
        from specdash.operations.which import Ambiguous

        here = self._here
        here.given["variant"] = variant
        try:
            here.server()
        except Ambiguous:
            raise
        except SpecdashError:  # the one that is meant is down: it is started
            return await launch.prepare(here.session, wish_to_launch(here), rules=here.rules, kind="restart")
        return await prepare(here)

    async def _restart(self, plan: Plan | None, stage: int) -> None:
        from specdash.commands.carrying import perform

        plan = plan or await self._restart_plan(stage)
        if plan.refusal:
            raise SpecdashError(
                f"{self._stages[stage]}: {plan.refusal}", "the same command goes on from here"
            )
        done = await perform(self._here, desk_of(self._here), plan)
        if not done.ok:
            raise SpecdashError(done.summary(), "the same command goes on from here")

    async def _measure(self, variant: str, repeat: int) -> None:
        from specdash.commands.carrying import link_is_lost
        from specdash.measuring.benchmark import Benchmark
        from specdash.measuring.course import Course, counted, subject_of, url_of
        from specdash.measuring.leftover import Leftovers
        from specdash.measuring.onhost import HostGenerator
        from specdash.operations.which import of_profile
        from specdash.profile.keys import key_variable

        here = self._here
        server = here.server()
        known = of_profile(here.profile, here.host_name, server)
        key = here.given["key_env"] or (key_variable(here.profile, known) if known else None)
        given = {**here.given, "key_env": key}
        loads, _ = loads_of(url_of(server), given, here.profile, counters=counted(server))
        course = Course(subject=subject_of(here.state, server, variant=variant), loads=loads, repeat=repeat)
        benchmark = Benchmark(
            course,
            HostGenerator(here.session, server.key, Leftovers(here.state.target)),
            keep=self._keeper.keep,
            host=here.session,
            known=self._keeper.known(),
        )
        try:
            runs = await run_benchmark(benchmark, lambda: link_is_lost(here))
            if any(run.run.cancelled for run in runs):
                raise SpecdashError("stopped")
            if any(run.id is None for run in runs):
                raise SpecdashError(
                    "a run could not be kept, and a campaign lives on what it keeps",
                    "mend what is said above",
                )
        except SpecdashError as error:
            error.hint = "; ".join(filter(None, (error.hint, "the same command goes on from here")))
            raise

    def _lives(self, place: Place) -> bool:
        """The start of the server that the last runs were made with is still there."""
        from specdash.bench.fingerprint import launch_of

        state = self._here.state
        return bool(place.launch) and any(
            server.gone_at is None and launch_of(state, server) == place.launch for server in state.servers
        )

    def _mine(self) -> tuple[Measured, ...]:
        return tuple(run for run in self._keeper.known() if self._tag in run.tags)
