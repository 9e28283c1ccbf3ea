"""``specdash init TARGET``: a first profile from what was found on the host."""

from __future__ import annotations

import asyncio
import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from specdash.commands.acting import say, scene
from specdash.commands.keeping import write
from specdash.commands.targets import target_options, typed
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.commands.acting import Scene
    from specdash.monitor.state import Server
    from specdash.operations.draft import Drafted

STDOUT = "-"


class Exists(SpecdashError):
    """The file is there: it is somebody's work."""

    exit_code: ClassVar[int] = 4


@click.command(short_help="Write a first specdash.toml from what runs on a host.")
@click.argument("target")
@click.option(
    "--output",
    metavar="FILE",
    default="specdash.toml",
    show_default=True,
    help="Where to; - is stdout. A file that is there is never overwritten.",
)
@target_options
def command(target: str, output: str, **given: Any) -> None:
    """Look at TARGET and write a commented profile: host, servers, how they were started, examples.

    Only looks; the one file is written here. No key, token or password is written: a server that has one
    gets api_key_env, the name of a variable on the host. What could not be read is said, on stderr and in
    the file. Exit code 4: FILE is there already.

    \b
    Examples:
      specdash init root@gpubox
      specdash init local --output - > specdash.toml
    """
    if output != STDOUT and Path(output).exists():
        raise _exists(output)
    sys.exit(asyncio.run(_init(target, output, given)))


def _exists(output: str) -> Exists:
    return Exists(f"{output} is there, and is not overwritten", "name another by --output, or - for stdout")


async def _init(target: str, output: str, given: dict[str, Any]) -> int:
    from specdash.monitor.importance import successor
    from specdash.operations.draft import draft, left_out
    from specdash.profile.loading import parse

    given = {**given, "watch": True, "profile": None, "server": None}
    async with scene(target, given) as here:
        known = here.state.servers
        wanted = [one for one in known if one.gone_at is None and successor(one, known) is None]
        servers = [await _drafted(here, server) for server in wanted]
        state, told = here.state, here.host.target if here.host else target
    day = datetime.date.today().isoformat()
    text = draft(state, told, servers, day, typed(given))
    parse(text, output)  # a draft that does not pass our own check must not be kept
    missing = {one.server.name: left_out(one) for one in servers}
    _keep(text, output, {"servers": list(missing), "missing": missing} if given["json"] else None)
    for name, words in missing.items():
        for word in words:
            say(clean_line(f"{name}: not in the profile: {word}"))
    if output != STDOUT:
        many = f"{len(servers)} server{'' if len(servers) == 1 else 's'}"
        say(f"{output}: written, {many}; read it, then: specdash config check {output}")
    return 0


def _keep(text: str, output: str, document: dict[str, Any] | None) -> None:
    if output != STDOUT:
        try:
            write(Path(output), text, anew=True)
        except FileExistsError:
            raise _exists(output) from None
    if document is not None:
        file_ = None if output == STDOUT else output
        click.echo(json.dumps({"schema": 1, "file": file_, **document, "profile": text}, ensure_ascii=False))
    elif output == STDOUT:
        click.echo(text, nl=False)


async def _drafted(here: Scene, server: Server) -> Drafted:
    from specdash.errors import RequestError
    from specdash.operations.acts import Hands
    from specdash.operations.draft import Drafted, paths_of
    from specdash.operations.found import launch_of
    from specdash.operations.sight import look, titles

    hands = Hands(here.session)
    try:
        sight = await look(hands, server)
        if sight.main is None or not sight.main.lives or sight.orphaned(titles()):
            return Drafted(server=server, found=None, gone=True)  # workers do not say how it was started
        found = launch_of(here.state, sight)
        paths = paths_of(found.launch.argv, found.launch.log)
        stats = await hands.stat_files(paths) if paths else ()
    except RequestError:
        return Drafted(server=server, found=None)
    if not _is_main(server.engine, found.launch.argv):
        return Drafted(server=server, found=None)
    return Drafted(server=server, found=found, files=tuple(stat.path for stat in stats if stat.exists))


def _is_main(engine: str, argv: Sequence[str]) -> bool:
    """It is a command line, and not a title that the process has given itself."""
    from specdash.intake.rules import default_rules
    from specdash.monitor.commandline import program

    return any(one.engine == engine and one.main.search(program(argv)) for one in default_rules().titles)
