"""``specdash connect TARGET…``: the dashboard."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.deferred import DeferredSource
from specdash.commands.folding import tell
from specdash.commands.numbers import Number
from specdash.commands.screen import Stage, screen_options
from specdash.commands.targets import check, meant, options_from, server_option, target_options

if TYPE_CHECKING:
    from specdash.alerting.herald import Herald
    from specdash.history.recording import Recorder
    from specdash.operations.offers import Operations
    from specdash.profile.document import Host, Profile
    from specdash.session.live import Session
    from specdash.session.source import Source


@click.command(short_help="The dashboard of one or more hosts.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET…")
@target_options
@server_option("it is looked at first; with --plain, it alone is told of")
@click.option(
    "--profile", type=click.Path(path_type=Path), help="The profile; else specdash.toml here, else yours."
)
@click.option("--record", metavar="FILE", help="Keep what the host says; specdash replay FILE plays it.")
@click.option("--probe", is_flag=True, help="Allow one token to be asked for, even with --watch.")
@click.option(
    "--interval",
    type=Number(0.2, 60),
    metavar="S",
    default=1.0,
    show_default=True,
    help="Seconds between samples.",
)
@screen_options
def command(targets: tuple[str, ...], **given: Any) -> None:
    """Watch the servers on one or more hosts until you leave. Leaving never touches a server.

    Without a terminal, with TERM=dumb or with --plain: one line for each change.

    \b
    Examples:
      specdash connect root@gpubox
      specdash connect gpubox dgx2 --watch
      specdash connect local --log /var/log/sglang.log
    """
    sys.exit(run(targets, given))


for _param in command.params:
    if isinstance(_param, click.Option) and _param.name == "json":
        _param.hidden = True  # a dashboard is no document; whoever asks for one is told where it is


def run(targets: tuple[str, ...], given: dict[str, Any]) -> int:
    """Open the hosts and show them; returns the exit code."""
    if given["json"]:
        raise click.UsageError("a dashboard is no document: `specdash status --json` prints one")
    from specdash.operations.which import Wanted
    from specdash.profile.loading import load
    from specdash.remote.target import parse_target

    check(given)
    profile = load(given["profile"])
    hosts = [profile.host_of(target) for target in targets]
    for target, named in zip(targets, hosts, strict=True):
        parse_target(named[1].target if named else target)  # what cannot be a host is said before any screen
    stage = Stage(
        plain=given["plain"],
        theme=given["theme"],
        ascii_only=given["ascii_only"],
        wanted=Wanted.of(given["server"], profile, [named[0] if named else None for named in hosts]),
        quiet=given["quiet"],
        host_themes=[named[1].theme if named else None for named in hosts],
    )
    recorders = [_recorder(given["record"], target, several=len(targets) > 1) for target in targets]
    more = {"probe": given["probe"], "interval": given["interval"]}
    sources = [
        DeferredSource(
            target,
            partial(_open, target, given, stage, profile, named, on_frame=recorder, **more),
            shown=named[1].target if named else None,
            watch_only=given["watch"] or bool(named and named[1].watch),
        )
        for target, named, recorder in zip(targets, hosts, recorders, strict=True)
    ]
    herald = _herald(profile, stage, sources, [named[0] if named else None for named in hosts])
    try:
        return asyncio.run(stage.play(sources))
    except KeyboardInterrupt:
        return stage.leave(sources)
    finally:
        for source in sources:
            if source.state.host is None and (hint := meant(profile, source.target, "connect", given)):
                tell(f"specdash: {hint}", err=True)
        _close(recorders)
        if herald is not None:
            herald.close()


def _herald(
    profile: Profile, stage: Stage, sources: Sequence[DeferredSource], names: Sequence[str | None]
) -> Herald | None:
    """Whoever the profile wants to be told is told for as long as the hosts are shown."""
    if not profile.notify:
        return None
    from specdash.alerting.herald import Herald

    herald = Herald(profile.notify, stage.complain)
    herald.attend(sources, names)
    known = {source.target: name for source, name in zip(sources, names, strict=True)}
    stage.tell = lambda host, words: herald.say(known.get(host), host, words)
    return herald


def _open(
    target: str,
    given: dict[str, Any],
    stage: Stage,
    profile: Profile,
    named: tuple[str, Host] | None,
    **more: Any,
) -> Source:
    from specdash.profile.keys import key_commands
    from specdash.session.live import open_source

    if named is None:
        others = tuple(profile.hosts)
        return open_source(target, options_from(given, stage.prompter, others=others, **more))
    watch = given["watch"] or named[1].watch
    options = options_from(
        {**given, "watch": watch},
        stage.prompter,
        unlockable=not given["watch"],
        hands=partial(_hands, profile, named, given, stage),
        keys=key_commands(profile, named[0]),
        **more,
    )
    return open_source(named[1].target, options)


def _hands(
    profile: Profile, named: tuple[str, Host], given: dict[str, Any], stage: Stage, session: Session
) -> Operations:
    """What may be done to a host of the profile, by its words."""
    from specdash.operations.journal import Journal
    from specdash.operations.offers import Operations

    outside = None
    if named[1].cleanup_via is not None:
        from specdash.session.live import open_source
        from specdash.session.outside import Outside

        second = options_from(
            {**given, "port": None, "identity": None, "jump": None, "log": None}, stage.prompter
        )
        outside = Outside(partial(open_source, named[1].cleanup_via, second))
    return Operations(
        session, Journal(), profile=profile, host_name=named[0], outside=outside, ends=session.ends
    )


def _recorder(name: str | None, target: str, *, several: bool) -> Recorder | None:
    """One file a host: of several hosts each adds its name to the file's."""
    if name is None:
        return None
    import time

    from specdash.history.recording import Recorder, place

    path = place(name, target, time.time())
    if several:
        path = path.with_name(f"{''.join(c if c.isalnum() else '_' for c in target)}-{path.name}")
    return Recorder(path, target)


def _close(recorders: Sequence[Recorder | None]) -> None:
    """End the files, and say where they are or why one of them is not whole."""
    for recorder in filter(None, recorders):
        recorder.close()
        trouble = f" (not whole: {recorder.problem})" if recorder.problem else ""
        tell(f"recorded to {recorder.path}{trouble}", err=True)
