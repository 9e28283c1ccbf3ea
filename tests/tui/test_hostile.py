"""What a host, a log or a server says is text: it cannot draw, colour, copy, or break the screen."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from specdash.monitor.documents import Diagnosis, Reason
from specdash.monitor.serverparts import LogSource
from specdash.monitor.state import Alert, HostState, Owner
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import SIZES, screen_lines, screen_text, settle, until

NASTY = [
    "[/b]",
    "[red]red[/red]",
    "[@click=app.quit]x[/]",
    "\x1b[31m\x1b]52;c;aGFjaw==\x07\x1b]0;title\x07",
    "\x9b2J\x85\u2028",
    "‮evil‬\u200f",
    "漢字🚀👩‍👩‍👧",
    "a" * 12_000,
    "two\nlines\r\n",
    "",
    "$primary $undefined {x} %s \\[",
]


def poisoned(state: HostState, text: str) -> HostState:
    """Every place that text can come from a host, poisoned."""
    owner = Owner(pid=1, mib=1, label=text, server=None, known=False)
    gpus = [
        msgspec.structs.replace(
            gpu, card=msgspec.structs.replace(gpu.card, name=text, throttle=(text,)), owners=(owner,)
        )
        for gpu in state.gpus
    ]
    if gpus:
        gpus[0] = msgspec.structs.replace(
            gpus[0], card=msgspec.structs.replace(gpus[0].card, error=text, used_mib=None)
        )
    diagnosis = Diagnosis(
        key=text, root=True, severity="error", line=1, rank=text, summary=text, evidence=text, remedy=(text,)
    )
    servers = tuple(
        msgspec.structs.replace(
            server,
            name=text,
            model=text,
            version=text,
            speculation=text,
            parallel=text,
            truth=text,
            log=LogSource(path=text, kind="file", says=text),
            rail=tuple(msgspec.structs.replace(i, title=text) for i in server.rail),
            steps=tuple(msgspec.structs.replace(s, title=text, detail=text) for s in server.steps),
            lamps=tuple(msgspec.structs.replace(lamp, value=text) for lamp in server.lamps),
            figures=msgspec.structs.replace(server.figures, source=text),
            diagnoses=(diagnosis,),
            verdict=msgspec.structs.replace(
                server.verdict, reasons=(Reason(signal=text, value=text, age_s=1, says="bad"),)
            ),
        )
        for server in state.servers
    )
    alert = Alert(key="k", at=state.now, severity="error", text=text, next_key=text)
    return msgspec.structs.replace(
        state,
        target=text or "x",
        gpus=tuple(gpus),
        servers=servers,
        alerts=(alert,),
        notes=(text,),
        gpu_error=text,
        link=msgspec.structs.replace(state.link, reason=text),
    )


@pytest.mark.parametrize("number", range(len(NASTY)))
async def test_no_text_of_a_host_breaks_or_draws_on_the_screen(number: int, make_app: Make) -> None:
    text, (width, height) = NASTY[number], SIZES[number % 2]
    makers = (states.serving, states.stalled, states.crashed, states.no_server, states.lost, states.refused)
    source = fakes.source(poisoned(states.serving(), text))
    app = make_app(source, fakes.source(states.idle()))
    async with app.run_test(size=(width, height)) as pilot:
        for make in makers:
            source.set(poisoned(make(), text))
            await settle(pilot)
            lines = screen_lines(app)
            assert {cell_len(line) for line in lines} == {width}
            assert "q quit" in lines[-1]
            for line in lines:
                assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in line)
                assert not {"‮", "\u2028", "\u200f"} & set(line)
        assert app.is_running


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_markup_in_names_is_shown_as_it_is(make_app: Make) -> None:
    source = fakes.source(poisoned(states.serving(), "[red]x[/red]"))
    app = make_app(source)
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        assert screen_text(app).count("[red]x[/red]") > 5
        await pilot.press("colon", *"server")
        await until(pilot, "server [red]x[/red]")


async def test_a_search_for_markup_is_a_search_for_text(make_app: Make) -> None:
    source = fakes.source(states.capture(), ["[/b] here", "other"], milestones=False)
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"[/b]", "enter")
        await settle(pilot)
        assert "▌[/b] here" in screen_text(app)
        await pilot.press("slash", *"[/no]", "enter")
        await settle(pilot)
        assert "not found: [/no]" in screen_text(app)


async def test_a_server_name_cannot_choose_where_a_log_is_saved(make_app: Make, own_folders: Path) -> None:
    state = states.capture()
    evil = msgspec.structs.replace(state.servers[0], name="../../../etc/passwd\x00")
    app = make_app(fakes.source(msgspec.structs.replace(state, servers=(evil,))))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+s")
        await pilot.pause()
    assert [name for name in names(own_folders) if name.endswith(".log")] == ["etc-passwd-.log"]
