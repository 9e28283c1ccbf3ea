"""``specdash config``: every mistake of a profile at once, and a schema that an editor can use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specdash.cli import root
from specdash.profile import document as profiles
from specdash.profile.schema import DIALECT, sections

BAD = """\
[hosts.a]
target = "a"
[servers.main]
host = "a"
engine = "sglang"
command = "python3"
api_key_env = "no good"
[benchmarks.x]
api = "chatt"
concurrency = ["a"]
[runbooks.r]
each = "variants"
steps = [{ do = "restrat" }]
[notify.n]
on = ["stald"]
url = "https://hooks.example/secret"
"""


def told(tmp_path: Path, text: str) -> tuple[int, list[str]]:
    path = tmp_path / "p.toml"
    path.write_text(text)
    said = CliRunner().invoke(root, ["config", "check", str(path)])
    return said.exit_code, [line.removeprefix(f"{path}:") for line in said.output.splitlines()]


def test_every_section_is_checked_and_no_mistake_hides_another(tmp_path: Path) -> None:
    code, lines = told(tmp_path, BAD)
    assert code == 1
    assert lines == [
        "6: servers.main.command: text where a list in [ ] is expected",
        "7: servers.main.api_key_env: write the name of a variable: letters, digits and _",
        "9: benchmarks.x.api: chatt is none of chat, completions; did you mean chat?",
        "10: benchmarks.x.concurrency: text where a whole number without quotes is expected",
        "12: runbooks.r.each: write variant",
        "13: runbooks.r.steps.do: restrat is none of check, kill, clean, launch, restart, patch;"
        " did you mean restart?",
        "15: notify.n.on: stald is none of stalled, crashed, degraded, ready, stopped, runbook;"
        " did you mean stalled?",
        "16: notify.n.url: unknown key; did you mean url_env?",
    ]


LAYERS = """\
[hosts.box]
target = "root@bo x"
[servers.main]
host = "bax"
engine = "vlm"
launcher = "systemdd:x"
command = []
env = { A = 1, HF_TOKEN = "hf_abcdefghijklmnopqrstuvwxyz" }
[servers.two]
host = 5
[variants.v]
server = "maim"
[runbooks.r]
steps = [{ do = "kil" }, { wait = 5 }, { do = "launch", variant = "w" }]
"""


def test_a_table_with_one_mistake_is_looked_at_for_the_others_too_and_for_no_more(tmp_path: Path) -> None:
    code, lines = told(tmp_path, LAYERS)
    assert code == 1
    assert [line.partition(";")[0] for line in lines] == [
        "2: hosts.box.target: 'root@bo x' has characters that no user or host name has",
        "4: servers.main.host: there is no [hosts.bax]",
        "5: servers.main.engine: no engine vlm",
        "6: servers.main.launcher: write process, systemd:UNIT, docker:NAME or tmux:SESSION",
        "7: servers.main.command: is empty: fill it",
        "8: servers.main.env.A: a whole number where text in quotes is expected",
        "8: servers.main.env.HF_TOKEN - a secret is never kept in a profile: export it on the host",
        "9: servers.two: missing engine",
        "9: servers.two: missing command",
        "10: servers.two.host: a whole number where text in quotes is expected",
        "12: variants.v.server: there is no [servers.maim]",
        "14: runbooks.r.steps.do: kil is none of check, kill, clean, launch, restart, patch",
        "14: runbooks.r.steps.wait: a whole number where text in quotes is expected",
        "14: runbooks.r.steps.variant: step 3: there is no [variants.w]",
    ]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('"sglang"', '"sglng"', "5: servers.main.engine: no engine sglng; did you mean sglang?"),
        ('target = "a"', 'target = "a b"', "2: hosts.a.target: 'a b' has characters that no user"),
        ('target = "a"', 'target = "a"\ntheme = "specdsh"', "3: hosts.a.theme: no theme specdsh; did you"),
        ('target = "a"', 'target = "a"\ncleanup_via = "-o"', "3: hosts.a.cleanup_via: "),
    ],
)
def test_what_no_engine_theme_or_host_can_be_is_a_mistake(
    before: str, after: str, says: str, tmp_path: Path
) -> None:
    good = '[hosts.a]\ntarget = "a"\n[servers.main]\nhost = "a"\nengine = "sglang"\ncommand = ["x"]\n'
    assert told(tmp_path, good) == (0, [" fine; 1 host, 1 server, 0 variants"])
    code, lines = told(tmp_path, good.replace(before, after))
    assert code == 1
    assert lines[0].startswith(says)


def test_what_is_there_is_counted(tmp_path: Path) -> None:
    text = '[benchmarks.x]\nrate = 1.5\n[notify.a]\nurl_env = "A"\n[notify.b]\nurl_env = "B"\n'
    assert told(tmp_path, text)[1] == [
        " fine; 0 hosts, 0 servers, 0 variants, 1 benchmark, 2 notify rules",
    ]


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(CliRunner().invoke(root, ["config", "schema"]).output)
    return loaded


def test_the_schema_says_what_every_key_means_and_knows_no_null() -> None:
    schema = document()
    assert schema["$schema"] == DIALECT
    assert '"null"' not in json.dumps(schema)
    silent = [
        f"{name}.{key}"
        for name, table in schema["$defs"].items()
        for key, value in table["properties"].items()
        if not value.get("description") and name != "Profile"
    ]
    assert silent == []


def test_the_table_for_people_has_every_table_and_key_of_the_types() -> None:
    shown = {section.title: [key.name for key in section.keys] for section in sections()}
    assert shown["[servers.NAME]"] == list(profiles.Server.__struct_fields__)
    assert len(shown) == len(document()["$defs"]) - 1
    for group in profiles.Profile.__struct_fields__:
        assert group == "schema" or f"[{group}.NAME]" in shown


def test_the_places_of_a_profile_say_what_lies_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own, yours = tmp_path / "specdash.toml", tmp_path / "config" / "specdash" / "specdash.toml"

    def lines() -> list[str]:
        return CliRunner().invoke(root, ["config", "path"]).output.splitlines()

    assert lines() == [f"  {own}  (not there)", f"  {yours}  (not there)"]
    yours.parent.mkdir(parents=True)
    yours.touch()
    assert lines() == [f"  {own}  (not there)", f"→ {yours}"]
    own.mkdir()
    assert lines() == [f"→ {own}  (a folder, and a plain file is wanted there)", f"  {yours}"]
