"""The profile: what it may say, and how a mistake in it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdash.errors import SpecdashError
from specdash.profile import document as profiles
from specdash.profile import loading
from specdash.profile.conditions import Both, Comparison, ConditionError, Either, Not, parse
from specdash.profile.loading import ProfileError
from specdash.sanitise import clean_line

GOOD = """\
schema = 1
[hosts.gpubox]
target = "root@gpubox"          # anything TARGET can be
cleanup_via = "root@hypervisor"
production = false
[servers.main]
host = "gpubox"
engine = "sglang"
launcher = "process"
command = [
  "python3", "-m", "sglang.launch_server",   # comment = with an equals sign
  "--port", "30000",
]
cwd = "/srv"
log = "/var/log/sglang.log"
api_key_env = "SGLANG_API_KEY"
[servers.main.env]
NCCL_PROTO = "LL"
NCCL_ALGO = "Ring"
[servers.main.needs]
files = ["/tmp/benchmark_eagle3.py"]
[variants.eagle3-2]
server = "main"
args = ["--speculative-algorithm", "EAGLE3"]
patches = [{ file = "/models/draft/config.json", set = { max_position_embeddings = 262144 } }]
[benchmarks.short]
concurrency = [1]
requests = 16
[benchmarks.mine]
command = ["python3", "/tmp/benchmark_eagle3.py"]
tok_s = 'throughput:\\s*([\\d.]+)'
[runbooks.night-watch]
steps = [{ wait = "state == 'ready'", within = "30m" }, { notify = "ready" }]
"""


def told(text: str) -> list[str]:
    try:
        loading.parse(text, "p.toml")
    except ProfileError as error:
        return [mistake.text("p.toml") for mistake in error.mistakes]
    return []


def changed(before: str, after: str) -> list[str]:
    assert before in GOOD
    return told(GOOD.replace(before, after))


def test_a_profile_says_everything_that_the_contract_allows() -> None:
    profile = loading.parse(GOOD)
    server = profile.servers["main"]
    assert server.env == {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring"}
    assert server.needs.files == ("/tmp/benchmark_eagle3.py",)
    assert profile.variants["eagle3-2"].patches[0].set == {"max_position_embeddings": 262144}
    assert profile.host_of("gpubox") == profile.host_of("root@gpubox")
    assert list(profile.servers_of("gpubox")) == ["main"]
    assert profile.host_of("other") is None


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("launcher =", "launchr =", "p.toml:9: servers.main.launchr: unknown key; did you mean launcher?"),
        (
            "cleanup_via",
            "clean_via",
            "p.toml:4: hosts.gpubox.clean_via: unknown key; did you mean cleanup_via?",
        ),
        (
            "[servers.main.needs]\nfiles",
            "[servers.main.needs]\nfile",
            "p.toml:21: servers.main.needs.file: unknown",
        ),
        (
            "[variants.eagle3-2]",
            "[varaints.eagle3-2]",
            "p.toml:22: varaints: unknown key; did you mean variants?",
        ),
        (
            'log = "/var/log/sglang.log"',
            "log = 5",
            "p.toml:15: servers.main.log: a whole number where text in quotes",
        ),
        (
            'host = "gpubox"',
            'host = "gpubx"',
            "p.toml:7: servers.main.host: there is no [hosts.gpubx]; did you mean gpubox",
        ),
        (
            'server = "main"',
            'server = "mian"',
            "p.toml:23: variants.eagle3-2.server: there is no [servers.mian]",
        ),
        (
            '"process"',
            '"systemd"',
            "p.toml:9: servers.main.launcher: write process, systemd:UNIT, docker:NAME or tmux",
        ),
        ('engine = "sglang"\n', "", "p.toml:6: servers.main: missing engine"),
        (
            "production = false",
            'production = "no"',
            "p.toml:5: hosts.gpubox.production: text where true or false without",
        ),
        ("requests = 16", "requests = 0", "p.toml:28: benchmarks.short.requests: write at least 1"),
        ("schema = 1", "schema = 2", "p.toml:1: schema: this specdash reads schema = 1"),
        ('"30m"', '"soon"', "p.toml:33: runbooks.night-watch.steps.within: write a time as 30s, 5m or 2h"),
        ("'ready'\"", "'redy'\"", "p.toml:33: runbooks.night-watch.steps.wait: step 1: 'redy' is no state"),
        (
            '{ notify = "ready" }',
            '{ notify = "ready", do = "kill" }',
            "p.toml:33: runbooks.night-watch.steps: step 2: exactly one of do, wait, check,",
        ),
        ("([\\d.]+)", "[\\d.]+", "p.toml:31: benchmarks.mine.tok_s: needs one group in parentheses"),
        ("cwd = ", "cwd = [", "p.toml:15: not TOML: Unclosed array"),
        (
            'target = "root@gpubox"',
            "target = root@gpubox",
            "p.toml:3: no value that TOML knows: text stands in quotes",
        ),
        ('cwd = "/srv"', 'cwd = "/srv', "p.toml:14: the closing quote of a text is missing"),
        ('cwd = "/srv"', 'cwd = "C:\\srv"', "p.toml:14: a \\ in a text: write"),
        ('cwd = "/srv"', 'host = "b"', "p.toml:14: this stands there twice: keep one"),
        ("[servers.main.env]", "[hosts.gpubox]", "p.toml:17: [hosts.gpubox] stands there twice: keep one"),
        (
            'NCCL_ALGO = "Ring"',
            "NCCL_ALGO = 1",
            "p.toml:19: servers.main.env.NCCL_ALGO: a whole number where",
        ),
        ("schema = 1", f"schema = {'[' * 3000}", "p.toml: no profile has lists within lists so deep"),
    ],
)
def test_a_mistake_names_file_line_key_and_the_nearest_right_word(before: str, after: str, said: str) -> None:
    found = changed(before, after)
    assert len(found) == 1, found
    assert found[0].startswith(said), found[0]


def test_a_key_has_one_place_to_come_from() -> None:
    both = 'api_key_env = "SGLANG_API_KEY"\napi_key_command = ["pass", "sglang"]'
    text = GOOD.replace('api_key_env = "SGLANG_API_KEY"', both)
    with pytest.raises(ProfileError, match=r"servers.main.api_key_command: give this or api_key_env"):
        loading.parse(text, "specdash.toml")


def test_a_key_in_a_profile_is_refused_with_where_it_belongs() -> None:
    refused = "a secret is never kept in a profile"
    assert changed('api_key_env = "SGLANG_API_KEY"', 'api_key = "sk-abc"') == [
        f"p.toml:16: servers.main.api_key - {refused}: name its variable (api_key_env)"
    ]
    for variable in ("HF_TOKEN", "VLLM_API_KEY"):
        wrong = f"p.toml:18: servers.main.env.{variable} - {refused}: export it on the host"
        assert changed('NCCL_PROTO = "LL"', f'{variable} = "x-12"') == [wrong]
        assert clean_line(wrong) == wrong  # the door takes no word of it for the secret
    for before, where in (
        ('"--port", "30000"', "10: servers.main.command"),
        ('"EAGLE3"', "24: variants.eagle3-2.args"),
    ):
        assert changed(before, f'{before}, "--api-key", "abc"')[0].startswith(f"p.toml:{where}: a secret is")


def test_a_table_that_cannot_be_read_hides_no_mistake_of_those_that_name_it() -> None:
    text = GOOD.replace('host = "gpubox"', "host = 5").replace('server = "main"', 'server = "mian"')
    text += '[variants.other]\nserver = "main"\n[notify.n]\n'
    assert [line.partition(": ")[2] for line in told(text)] == [
        "servers.main.host: a whole number where text in quotes is expected",
        "variants.eagle3-2.server: there is no [servers.mian]; did you mean main?",
        "notify.n: give url_env or url_command, one of them: never the address",
    ]


def test_all_mistakes_are_told_in_the_order_of_their_lines() -> None:
    text = GOOD.replace("launcher", "launchr").replace("cwd =", "cdw =").replace('"gpubox"', '"gpubx"')
    found = told(text)
    assert [line.split(":")[1] for line in found] == ["7", "9", "14"]
    with pytest.raises(ProfileError) as error:
        loading.parse(text, "p.toml")
    assert error.value.exit_code == 2
    assert error.value.hint == "there are more mistakes: specdash config check p.toml shows all"


def test_quotes_long_strings_and_lists_do_not_mislead_the_line_count() -> None:
    text = (
        'schema = 1\n[hosts."a.b"]\ntarget = "x"\n[servers.s]\nhost = "a.b"\nengine = "vllm"\n'
        'command = ["""\n[not.a.table]\nkey = 1\n""", "]"]\nbad = 1\n'
    )
    assert told(text) == ["p.toml:11: servers.s.bad: unknown key"]


def test_an_empty_profile_is_a_profile() -> None:
    assert loading.parse("") == profiles.Profile()


def test_the_current_folder_goes_before_the_config_folder_and_a_given_file_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, here = tmp_path / "config", tmp_path / "here"
    for folder in (config / "specdash", here):
        folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.chdir(here)
    assert loading.find() is None
    assert loading.load() == profiles.Profile()
    (config / "specdash" / "specdash.toml").write_text('[hosts.c]\ntarget = "c"\n')
    assert list(loading.load().hosts) == ["c"]
    (here / "specdash.toml").write_text('[hosts.h]\ntarget = "h"\n')
    assert list(loading.load().hosts) == ["h"]
    given = tmp_path / "other.toml"
    given.write_text('[hosts.g]\ntarget = "g"\n')
    assert list(loading.load(given).hosts) == ["g"]
    with pytest.raises(SpecdashError, match="there is no such profile"):
        loading.load(tmp_path / "missing.toml")
    with pytest.raises(SpecdashError, match="here: a folder, and a plain file"):
        loading.load(here)


def test_an_editor_of_another_system_is_understood_or_told_what_to_save(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b'\xef\xbb\xbfschema = 1\r\n[hosts.a]\r\ntarget = "a"\r\n')
    assert list(loading.load(path).hosts) == ["a"]
    path.write_bytes(b"schema = 1\n# caf\xe9\n")
    with pytest.raises(ProfileError, match=r"p\.toml:2: not UTF-8: save it in that encoding"):
        loading.load(path)


def test_the_schema_is_one_that_an_editor_can_use() -> None:
    schema = loading.schema()
    assert "launcher" in schema["$defs"]["Server"]["properties"]
    assert schema["$defs"]["Server"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("state == 'ready'", Comparison("state", "==", "ready")),
        ("gpu.used_mib < 100", Comparison("gpu.used_mib", "<", 100.0)),
        (
            "not state == 'ready' and servers > 0 or phase != 'capture'",
            Either(
                Both(Not(Comparison("state", "==", "ready")), Comparison("servers", ">", 0.0)),
                Comparison("phase", "!=", "capture"),
            ),
        ),
        (
            '(servers == 1 or servers == 2) and state == "stalled"',
            Both(
                Either(Comparison("servers", "==", 1.0), Comparison("servers", "==", 2.0)),
                Comparison("state", "==", "stalled"),
            ),
        ),
    ],
)
def test_a_condition_means_what_a_person_means_by_it(text: str, meant: object) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("stat == 'ready'", "did you mean 'state'"),
        ("state = 'ready'", "cannot be read"),
        ("state == ready", "a word in quotes"),
        ("state < 'ready'", "no <"),
        ("gpu.used_mib == 'much'", "is a number"),
        ("state == 'ready' and", "a name is missing"),
        ("(state == 'ready'", r"\) is missing"),
        ("state == 'ready' 5", "not expected"),
        ("", "a name is missing"),
        ("__import__('os')", "is no name here"),
        ("(" * 50 + "servers == 1" + ")" * 50, "nested too deeply"),
        ("not " * 50 + "servers == 1", "nested too deeply"),
    ],
)
def test_a_condition_that_means_nothing_says_why_and_is_never_run(text: str, why: str) -> None:
    with pytest.raises(ConditionError, match=why):
        parse(text)


BOOK = """
[servers.main]
host = "box"
engine = "sglang"
command = ["python3"]
[hosts.box]
target = "box"
[variants.fast]
server = "main"
[runbooks.night]
steps = [
  { manual = "call the owner" },
  { do = "kill" },
  { patch = { file = "/models/draft/config.json", set = { max_position_embeddings = 262144 } } },
  { do = "restart", variant = "fast", force = ["draft"], title = "again" },
  { wait = "milestone capture end on all ranks", within = "30m", unless = "state == 'crashed'" },
  { check = "gpu.used_mib < baseline" },
  { run = ["nvidia-smi", "-q"], within = "30s" },
  { notify = "ready" },
]
"""


def test_a_runbook_has_every_kind_of_step() -> None:
    steps = loading.parse(BOOK).runbooks["night"].steps
    assert steps[4].unless == "state == 'crashed'"
    assert steps[6].run == ("nvidia-smi", "-q")
    assert steps[3].force == ("draft",)


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ('do = "kill"', 'do = "kil"', 13, "steps.do: kil is none of check, kill"),
        ('do = "kill"', 'do = "kil"', 13, "did you mean kill?"),
        ('do = "kill"', 'dos = "kill"', 13, "steps.dos: unknown key; did you mean do?"),
        (
            'variant = "fast"',
            'variant = "fasst"',
            15,
            "step 4: there is no [variants.fasst]; did you mean fast?",
        ),
        ('"kill"', '"kill", variant = "fast"', 13, "steps.variant: step 2: a kill starts nothing"),
        ("capture end", "captur end", 16, "'captur' is no phase: did you mean 'capture'?"),
        ("== 'crashed'", "= 'crashed'", 16, "steps.unless: step 5: "),
        ("used_mib", "used_mb", 17, "step 6: 'gpu.used_mb' is no name here: did you mean 'gpu.used_mib'?"),
        ('["nvidia-smi", "-q"]', '"nvidia-smi -q"', 18, "steps.run: text where a list in [ ]"),
        ('"nvidia-smi", "-q"', '"x", "--api-key", "sk-abcdefghijklmn"', 18, "a secret is never kept"),
        ('notify = "ready"', 'notify = "ready", within = "3m"', 19, "steps.within: step 8: only beside wait"),
        ('notify = "ready"', 'bench = "short"', 19, "steps.bench: step 8: there is no [benchmarks.short]"),
    ],
)
def test_a_mistake_in_a_runbook_names_the_line_of_its_step(
    before: str, after: str, line: int, said: str
) -> None:
    assert before in BOOK
    found = told(BOOK.replace(before, after))
    assert found, said
    assert any(said in one and one.startswith(f"p.toml:{line}: runbooks.night.") for one in found), found


def test_steps_in_tables_of_their_own_have_their_own_lines() -> None:
    found = told('[[runbooks.a.steps]]\ndo = "kill"\n[[runbooks.a.steps]]\nwait = "x == 1"\n')
    assert found[0].startswith("p.toml:3: runbooks.a.steps.wait: step 2: 'x' is no name"), found
