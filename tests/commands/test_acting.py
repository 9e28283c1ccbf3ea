"""What a command that changes a host asks before it does, and what it takes up again."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from specdash.cli import root
from specdash.commands import carrying
from specdash.commands.acting import Refused
from specdash.operations.plan import Kind, Plan, Step, Typing
from specdash.operations.work import Launch, Look, Start
from tests.commands.terminals import Typist, typist

__all__ = ["typist"]

NOW = 1_795_960_000.0


def plan(kind: Kind = "kill", subject: str = "sglang:30000 (pid 1)", **more: Any) -> Plan:
    step = Step(
        title="look", risk="hard", work=Look(path="/x", becomes=""), preview=("SIGTERM 1  \x1b[31mevil",)
    )
    given = {"steps": (step,), **more}
    return Plan(
        id=f"{kind}-1", kind=kind, subject=subject, target="t", host="gpubox", boot="b", made=NOW, **given
    )


def start(name: str, **more: Any) -> Step:
    launch = Launch(name=name, engine="sglang", argv=("a",))
    return Step(title="start", risk="hard", work=Start(launch=launch), **more)


async def test_without_a_terminal_only_yes_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(Refused, match="not confirmed") as refused:
        await carrying.confirm(plan(), yes=False)
    assert refused.value.exit_code == 4
    await carrying.confirm(plan(), yes=True)


async def test_a_plan_with_nothing_to_do_or_only_to_look_is_not_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    only_looks = msgspec.structs.replace(plan().steps[0], risk="read")
    for steps in ((), (only_looks,)):
        await carrying.confirm(plan("clean", steps=steps), yes=False)
    assert plan("clean", "leftovers", steps=()).summary() == "clean leftovers: nothing to do"


async def test_yes_does_not_stand_for_a_name_that_must_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    typed = plan(typing=Typing(word="gpubox", why="gpubox is marked production", key="production"))
    with pytest.raises(Refused) as refused:
        await carrying.confirm(typed, yes=True)
    assert str(refused.value) == (
        "gpubox is marked production: its name must be typed on a terminal (or --force production)"
    )
    with pytest.raises(Refused, match=r"was not confirmed \(--yes --force production does it"):
        await carrying.confirm(typed, yes=False)


@pytest.mark.parametrize(
    ("answer", "done"), [("gpubox", True), (" gpubox ", True), ("gpu", False), ("", False)]
)
async def test_the_hosts_name_must_be_typed_whole(answer: str, done: bool, typist: Typist) -> None:
    typist.types(f"{answer}\n")
    typed = plan(typing=Typing(word="gpubox", why="4711 belongs to bob", key="foreign"))
    if done:
        await carrying.confirm(typed, yes=True)
    else:
        with pytest.raises(Refused, match="nothing was done"):
            await carrying.confirm(typed, yes=True)


def test_a_plan_is_shown_whole_and_its_text_obeys_nobody() -> None:
    lines = list(carrying.shown(plan(warnings=("mind \x1b]0;title\x07this",), refusal="no"), None))
    assert lines == [
        "kill sglang:30000 (pid 1) on t (gpubox)",
        "  1 look",
        "      SIGTERM 1  evil",
        "  ▲ mind this",
        "  ✖ no",
    ]


def test_the_same_thing_that_was_cut_off_goes_on_for_half_an_hour() -> None:
    old = plan()
    old = old.advance(0, state="active", started=NOW)
    assert carrying.goes_on(old, plan(), NOW + 60)
    assert not carrying.goes_on(old, plan(subject="vllm:8000 (pid 2)"), NOW + 60)
    assert not carrying.goes_on(old, plan(), NOW + 3600)


def test_a_start_that_was_begun_is_followed_and_not_made_twice() -> None:
    begun = plan("restart", "main (pid 1)", steps=(start("main", state="done", started=NOW),))
    fresh = plan("restart", "main (pid 2)", steps=(start("main"),))
    assert carrying.goes_on(begun, fresh, NOW + 60)
    only_stopped = msgspec.structs.replace(begun, steps=(start("main"),))
    assert not carrying.goes_on(only_stopped, fresh, NOW + 60)
    other = plan("restart", "other (pid 2)", steps=(start("other"),))
    assert not carrying.goes_on(begun, other, NOW + 60)


def test_a_step_is_told_once_with_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    narrator = carrying.Narrator()
    running = plan().advance(0, state="active", evidence="3 s left")
    narrator.tell(running)
    ended = running.advance(0, state="done", evidence="ended", notes=("a note", "SIGTERM 1  \x1b[31mevil"))
    narrator.tell(ended)
    narrator.tell(ended)
    assert capsys.readouterr().err == "✓ 1/1 look: ended\n    a note\n"
    slow = running.advance(0, state="done", evidence="ended", started=NOW, ended=NOW + 5.9)
    carrying.Narrator().tell(slow)
    assert capsys.readouterr().err == "✓ 1/1 look, 5 s: ended\n"
    carrying.Narrator().tell(running.advance(0, state="failed", evidence="it did not"))
    assert capsys.readouterr().err == "✖ 1/1 look, failed: it did not\n", "in a word: it is read aloud, too"


def test_the_longer_a_step_takes_the_more_seldom_it_is_told() -> None:
    assert [carrying.pause_s(passed) for passed in (0.0, 20.0, 60.0, 120.0, 3600.0)] == [5, 5, 15, 30, 30]


def cli(*arguments: str) -> Any:
    return CliRunner().invoke(root, list(arguments))


def test_config_check_tells_all_mistakes_and_a_good_profile_is_fine(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.toml", tmp_path / "good.toml"
    bad.write_text('[hosts.a]\ntarget = "a"\nprodction = true\nthem = "x"\n')
    said = cli("config", "check", str(bad))
    assert said.exit_code == 1
    assert said.output.splitlines() == [
        f"{bad}:3: hosts.a.prodction: unknown key; did you mean production?",
        f"{bad}:4: hosts.a.them: unknown key; did you mean theme?",
    ]
    good.write_text('[hosts.a]\ntarget = "a"\n')
    assert cli("config", "check", str(good)).output == f"{good}: fine; 1 host, 0 servers, 0 variants\n"


def test_config_path_says_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "specdash.toml").write_text("")
    lines = cli("config", "path").output.splitlines()
    assert lines[0].startswith("→ ")
    assert lines[1].endswith("(not there)")
    assert '"launcher"' in cli("config", "schema").output


def test_a_host_that_the_profile_marks_as_watched_is_not_even_connected(tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text('[hosts.box]\ntarget = "root@192.0.2.1"\nwatch = true\n')
    said = cli("kill", "box", "--yes", "--profile", str(profile))
    assert isinstance(said.exception, Refused)
    assert said.exception.message == "kill changes the host, and the profile says watch = true for box"
