"""``specdash runbook TARGET NAME``: a procedure, step after step, that goes on where it was cut off."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import EXIT_FAILED, Refused, acting_options, say, scene, show
from specdash.commands.folding import tell
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.commands.acting import Scene
    from specdash.profile.document import Profile
    from specdash.runbooks.book import Book
    from specdash.runbooks.conductor import Conductor
    from specdash.runbooks.runs import Run, Runs

EXIT_INTERRUPTED = 130


@click.command(short_help="A procedure of the profile, step after step; --list names them.")
@click.argument("target", required=False)
@click.argument("name", required=False)
@click.option("--list", "list_", is_flag=True, help="Name the runbooks there are; no connection.")
@click.option("--retry", "decision", flag_value="retry", help="Go on with the step that failed.")
@click.option("--skip", "decision", flag_value="skip", help="Go on behind the step that failed.")
@click.option("--tick", "decision", flag_value="tick", help="The manual step at hand is done: go on.")
@click.option("--abort", "decision", flag_value="abort", help="Give the run up that has stopped.")
@acting_options
def command(target: str | None, name: str | None, list_: bool, decision: str | None, **given: Any) -> None:
    """Carry the runbook NAME out on TARGET. A run that was cut off goes on, and nothing is done twice.

    Each operation shows its plan first; --yes agrees to all of them. What somebody else does meanwhile is
    seen, and counts. A step that fails stops the run: exit code 1, and the same command with --retry, --skip
    or --abort goes on from there. Under --watch only runbooks that change nothing are run.

    \b
    Examples:
      specdash runbook --list
      specdash runbook gpubox restart-and-verify
      specdash runbook gpubox night-watch --watch
    """
    from specdash.profile.loading import load
    from specdash.runbooks.book import find

    profile = load(given.get("profile"))
    if list_:
        _list(profile, as_json=given["json"])
        return
    if target is None or name is None:
        raise click.UsageError("TARGET and NAME are needed; --list names the runbooks")
    named = profile.host_of(target)
    book = find(profile, name, named[0] if named else "")
    watch = given["watch"] or bool(named and named[1].watch)
    if watch and book.acts:
        whose = "--watch" if given["watch"] else f"watch = true for {target}"
        raise Refused(f"{name} changes the host, and {whose} never does")
    try:
        sys.exit(asyncio.run(_run(target, book, decision, given)))
    except KeyboardInterrupt:
        say("cut off: how far it came is kept, and the same command goes on")
        sys.exit(EXIT_INTERRUPTED)


def _list(profile: Profile, *, as_json: bool) -> None:
    from specdash.runbooks.book import books, title_of

    known = books(profile)
    if as_json:
        rows = [
            {
                "name": book.name,
                "about": book.about,
                "ours": book.ours,
                "acts": book.acts,
                "missing": book.lacks,
                "steps": [title_of(step) for step in book.steps],
            }
            for book in known.values()
        ]
        click.echo(json.dumps({"schema": 1, "runbooks": rows}, indent=1, ensure_ascii=False))
        return
    wide = max(len(name) for name in known)
    for book in known.values():
        whose = "" if not book.ours else "  (ours)"
        looks = "" if book.acts else "  looks only"
        steps = f"{len(book.steps)} step{'' if len(book.steps) == 1 else 's'}"
        click.echo(f"{clean_line(book.name):{wide}}  {steps}{looks}{whose}")
        if book.about:
            tell(f"{'':{wide}}  {clean_line(book.about)}")
        if book.lacks is not None:
            tell(f"{'':{wide}}  cannot be run: {book.lacks}")


async def _run(target: str, book: Book, decision: str | None, given: dict[str, Any]) -> int:
    from specdash.runbooks.runs import Runs
    from specdash.runbooks.telling import as_json, shown

    runs = Runs()
    async with scene(target, given, outside=True) as here:
        run = _taken_up(here, book, runs, decision)
        show(shown(run), given)
        if given["dry_run"]:
            if given["json"]:
                click.echo(as_json(run))
            return 0
        return await _carry_out(here, run, runs, decision)


def _taken_up(here: Scene, book: Book, runs: Runs, decision: str | None) -> Run:
    """The run that was cut off or has stopped, else a new one."""
    from specdash.runbooks.runs import new_run

    old = runs.cut_off(here.session.target, book.name)
    server = here.wanted.on_screen(here.state.servers) if here.wanted else None
    if old is not None and old.begun:
        if decision != "abort" and server not in (None, old.server):
            whose = f"server {old.server}" if old.server else "no server by its name"
            raise SpecdashError(
                f"{book.name} has stopped here for {whose}, not for {server}",
                "without --server it goes on, --abort gives it up",
            )
        say(f"this goes on: {clean_line(old.summary())}")
        return old
    if decision is not None:
        raise SpecdashError(f"no run of {book.name} has stopped here", f"without --{decision} one begins")
    host, target = here.state.host, here.session.target
    name, made_up = (host.name, host.simulated) if host else ("", False)
    return new_run(book, target, host=name, server=server, now=time.time(), simulated=made_up)


async def _carry_out(here: Scene, run: Run, runs: Runs, decision: str | None) -> int:
    from specdash.commands.conducting import Headless, conductor_for, perform
    from specdash.runbooks.telling import as_json

    person = Headless(here, ticked=decision == "tick")
    conductor = conductor_for(here, runs, person)
    as_document = bool(here.given["json"])
    if decision == "abort":
        run = conductor.abort(run)
    else:
        if decision in ("retry", "skip"):
            _decided(conductor, run, decision)
            run = conductor.run or run
        try:
            run = await perform(here, conductor, run)
        except BaseException:
            if as_document and conductor.run is not None:
                click.echo(as_json(conductor.run))
            raise
        finally:
            person.herald.close()
    click.echo(as_json(run) if as_document else clean_line(run.summary()))
    if not as_document:
        say(f"specdash report {run.id} tells what was done")
    return 0 if run.ok else EXIT_FAILED


def _decided(conductor: Conductor, run: Run, decision: str) -> None:
    at = run.next
    if at is None or run.steps[at].state != "failed":
        raise SpecdashError(f"no step of {run.name} has failed", "without --retry and --skip it goes on")
    conductor.decide(run, "retry" if decision == "retry" else "skip")
