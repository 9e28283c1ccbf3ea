"""``specdash replay FILE``: a recording through the same screens."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.folding import tell
from specdash.commands.keeping import write
from specdash.commands.numbers import Number
from specdash.commands.screen import Stage, dress, screen_options
from specdash.commands.targets import server_option

if TYPE_CHECKING:
    from specdash.history.replay import ReplaySource
    from specdash.operations.which import Wanted

_SIZE = re.compile(r"(\d{2,4})x(\d{1,4})")


def _size(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, int]:
    """``120x40``: columns and lines."""
    found = _SIZE.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no size; say 120x40")
    return int(found[1]), int(found[2])


class _Recorded(click.Path):
    """A file, or the bare name that --record was given."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from specdash.history.recording import found

        return super().convert(found(str(value)), param, ctx)


@click.command(short_help="A recording through the same screens.")
@click.argument("file", type=_Recorded(exists=True, dir_okay=False, path_type=Path))
@click.option("--speed", type=Number(0.01, 10000), metavar="X", help="How many times as fast as it happened.")
@click.option("--at", "second", type=Number(min=0), metavar="S", help="Begin at this second.")
@click.option(
    "--screenshot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.svg",
    help="Draw the screen of second --at (else the last one) into a file.",
)
@click.option(
    "--size",
    callback=_size,
    metavar="WxH",
    default="120x40",
    show_default=True,
    help="Size of the screenshot.",
)
@server_option("it is looked at")
@click.option(
    "--json", "as_json", is_flag=True, help="The status of second --at (else the last one), as JSON."
)
@click.option("--plain", is_flag=True, help="Plain lines, no screen; all at once without --speed.")
@screen_options
def command(file: Path, **given: Any) -> None:
    """Play a recording that `connect --record` made, as if its host were connected.

    \b
    Examples:
      specdash replay night.specdash.gz --speed 10
      specdash replay night.specdash.gz --at 3600 --json
      specdash replay night.specdash.gz --at 3600 --screenshot hang.svg
    """
    from specdash.history.recording import Recording
    from specdash.history.replay import ReplaySource
    from specdash.intake.rules import default_rules

    given["wanted"] = _wanted(given["server"])
    second, still = given["second"], bool(given["screenshot"])
    speed = 0.0 if still else given["speed"] or 1.0
    source = ReplaySource(Recording(file), default_rules(), speed=speed)
    if given["as_json"]:
        _print_document(source, second, given["wanted"])
    elif still:
        drawing = asyncio.run(_draw(source, second, **given))
        _write(given["screenshot"], drawing, source.second)
    else:
        if second is not None:
            source.jump(second)
        sys.exit(_play(source, given))


def _wanted(word: str | None) -> Wanted | None:
    """By the profile's name, too: it may know the host of the recording."""
    from specdash.operations.which import Wanted
    from specdash.profile.loading import load

    profile = load() if word is not None else None
    return Wanted.of(word, profile, profile.hosts if profile else ())


def _print_document(source: ReplaySource, second: float | None, wanted: Wanted | None) -> None:
    from specdash.commands.status import only
    from specdash.monitor.status import encode, status_document

    source.jump(float("inf") if second is None else second)
    click.echo(encode(status_document(only(source.state, wanted) if wanted else source.state)))


async def _draw(
    source: ReplaySource,
    at: float | None,
    *,
    size: tuple[int, int],
    theme: str | None,
    ascii_only: bool,
    wanted: Wanted | None,
    **_: Any,
) -> str:
    """The screen of one second as SVG, drawn without a terminal."""
    from specdash.operations.which import absent
    from specdash.tui.app import SpecdashApp

    chosen = dress(theme)
    for trouble in chosen.troubles:
        tell(f"specdash: {trouble}", err=True)
    source.jump(float("inf") if at is None else at)
    if wanted is not None and not any(map(wanted.means, source.state.servers)):
        raise click.UsageError(f"{absent(wanted, source.state.servers)}, at that second")
    app = SpecdashApp(
        [source], themes=chosen.themes, theme=chosen.theme, ascii_only=ascii_only, prefer=wanted
    )
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        drawing = app.export_screenshot()
    await source.stop()
    return drawing


def _write(path: Path, drawing: str, second: float) -> None:
    write(path, drawing)
    click.echo(f"{path}: second {second:.0f} of the recording", err=True)


def _play(source: ReplaySource, given: dict[str, Any]) -> int:
    stage = Stage(
        plain=given["plain"],
        theme=given["theme"],
        ascii_only=given["ascii_only"],
        wanted=given["wanted"],
        quiet=given["quiet"],
    )
    show = (
        stage.play([source], farewell=False)
        if stage.screen
        else _narrate(source, given["speed"], given["wanted"])
    )
    try:
        return asyncio.run(show)
    except KeyboardInterrupt:
        return 0


async def _narrate(source: ReplaySource, speed: float | None, wanted: Wanted | None) -> int:
    """One line for each change, second by second, until the recording ends."""
    from specdash.tui.plain import Narrator

    narrator = Narrator(wanted=wanted)
    while not source.ended:
        source.jump(source.next_second)
        for line in narrator.tell(source.state):
            tell(line)
        if speed:
            sys.stdout.flush()
            await asyncio.sleep((source.next_second - source.second) / speed)
    return 0
