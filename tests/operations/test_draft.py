"""The first profile: what is in it, what never is, and that every example in it can be used as it stands."""

from __future__ import annotations

import re

import msgspec
import pytest
import tomli

from specdash.monitor.documents import Verdict
from specdash.monitor.state import HostFacts, HostState, Server
from specdash.operations.draft import Drafted, draft, left_out, paths_of
from specdash.operations.found import Found
from specdash.operations.work import Launch
from specdash.profile import loading
from tests.commands.examples import check_command_line

KEY = "sk-abcdefghijklmnop1234"
ARGV = (
    *("python3", "-m", "sglang.launch_server", "--model-path", "/models/target", "--port", "30000"),
    *("--speculative-num-steps", "3", "--api-key", KEY, "--chat-template", '/srv/it\'s "odd".jinja'),
)
ENV = {
    "NCCL_PROTO": "LL",
    "PATH": "/opt/venv/bin:/usr/bin",
    "HF_TOKEN": "hf_abcdefghijklmnopqrstuv",
    "SGLANG_API_KEY": "another-secret",
    "HOME": "/root",
}


def server(name: str = "sglang:30000") -> Server:
    verdict = Verdict(word="ready", since_s=1, limit_s=None, reasons=())
    return Server(key="1:1", engine="sglang", name=name, pid=1, start=1, started_at=0.0, verdict=verdict)


def state(name: str = "gpubox.example.org") -> HostState:
    facts = HostFacts(name=name, boot="b", user="root", uid=0, python="3.10", agent_pid=2, watch_only=True)
    return HostState(target="root@gpubox", host=facts)


def drafted(argv: tuple[str, ...] = ARGV, name: str = "sglang:30000", **more: object) -> Drafted:
    given: dict[str, object] = {"env": ENV, "cwd": "/srv", "log": "/var/log/sglang.log", **more}
    launch = Launch(name=name, engine="sglang", argv=argv, **given)  # type: ignore[arg-type]
    return Drafted(server=server(name), found=Found(target="t", launch=launch), files=("/models/target",))


def text_of(*servers: Drafted, target: str = "root@gpubox") -> str:
    return draft(state(), target, servers, "2026-11-02")


def with_examples(text: str) -> str:
    """As somebody leaves it who takes the ``#`` off every example."""
    return re.sub(r"^#(?! |$)", "", text, flags=re.MULTILINE)


def test_a_found_server_becomes_a_profile_that_starts_it_again() -> None:
    profile = loading.parse(text_of(drafted()))
    main = profile.servers["main"]
    assert profile.hosts["gpubox"].target == "root@gpubox"
    assert main.command[:7] == ARGV[:7]
    assert main.command[-1] == ARGV[-1]
    assert (main.engine, main.cwd, main.log) == ("sglang", "/srv", "/var/log/sglang.log")
    assert main.env == {"NCCL_PROTO": "LL", "PATH": "/opt/venv/bin:/usr/bin"}
    assert main.needs.files == ("/models/target",)


def test_what_a_start_was_told_about_models_and_the_network_is_told_to_the_next() -> None:
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": "/data/hub", "LD_PRELOAD": "/usr/lib/libtcmalloc.so.4"}
    mirror = {"HF_ENDPOINT": "https://me:sk-abcdefghijklmnop1234@mirror.example.org"}
    one = drafted(env={**ENV, **offline, **mirror})
    env = loading.parse(text_of(one)).servers["main"].env
    assert env == {"NCCL_PROTO": "LL", "PATH": "/opt/venv/bin:/usr/bin", **offline}
    assert any("HF_ENDPOINT" in words for words in left_out(one))


def test_no_secret_is_in_it_and_each_that_was_left_out_is_told() -> None:
    one = drafted()
    text = text_of(one)
    for secret in (KEY, "hf_abc", "another-secret", "--api-key"):
        assert secret not in text
    assert loading.parse(text).servers["main"].api_key_env == "SGLANG_API_KEY"
    told = " ".join(left_out(one))
    assert "HF_TOKEN" in told
    assert "a key on its command line" in told
    assert all(f"# Not here: {words}" in text for words in left_out(one))


GONE = Drafted(server=server("sglang:30009"), found=None, gone=True)
CASES: list[tuple[Drafted, ...]] = [
    *((), (drafted(),), (drafted(), drafted(name="sglang:30001"))),
    *((GONE,), (GONE, drafted()), (Drafted(server=server(), found=None), drafted(argv=()))),
]


def each_example(text: str) -> list[str]:
    """The file with one example, or one line of one, without its ``#``; one text for each."""
    found = re.finditer(r"^#\[.*\n(?:#(?! ).*\n?)*|^#(?![ \[]).*\n", text, flags=re.MULTILINE)
    return [text[: hit.start()] + with_examples(hit[0]) + text[hit.end() :] for hit in found]


@pytest.mark.parametrize("servers", CASES)
def test_each_example_in_it_passes_the_check_when_its_hash_alone_is_taken_off(
    servers: tuple[Drafted, ...],
) -> None:
    examples = each_example(text_of(*servers))
    assert len(examples) > 5
    for text in examples:
        loading.parse(text)


@pytest.mark.parametrize("servers", CASES)
def test_every_example_in_it_passes_the_check_once_its_hash_is_taken_off(
    servers: tuple[Drafted, ...],
) -> None:
    profile = loading.parse(with_examples(text_of(*servers)))
    assert bool(profile.variants) == any(one.found and one.found.launch.argv for one in servers)
    assert profile.benchmarks
    assert profile.runbooks
    assert profile.notify
    assert profile.servers
    assert profile.hosts["gpubox"].production


@pytest.mark.parametrize(
    "one",
    [
        Drafted(server=server(), found=None),
        drafted(argv=()),
        drafted(argv=("python3", "\udcff")),
    ],
)
def test_a_server_whose_command_line_is_unknown_is_an_example_to_fill_in(one: Drafted) -> None:
    text = text_of(one)
    assert not loading.parse(text).servers
    assert "# Not here: how it was started: its command line " in text
    assert loading.parse(with_examples(text)).servers["main"].engine == "sglang"


def test_a_server_that_was_being_restarted_just_then_has_ended_and_did_not_crash() -> None:
    text = text_of(GONE)
    assert "# sglang:30009 · had ended" in text
    assert (
        "# Not here: how it was started: its main process had ended\n# Write this anew once it runs" in text
    )
    assert not re.search(r"crashed|sudo|pid", text)


def test_examples_name_a_server_of_the_file_and_say_which_where_several_run() -> None:
    text = text_of(GONE, drafted())
    assert '#server = "sglang-30000"' in text
    assert text.count("--server sglang-30000") == 2
    assert "--server" not in text_of(drafted())


def test_what_a_dead_server_left_is_told_where_none_runs() -> None:
    left = msgspec.structs.replace(server(), gone_at=5.0, processes=2)
    text = draft(msgspec.structs.replace(state(), servers=(left,)), "root@gpubox", (), "2026-11-02")
    assert "No server ran" in text
    assert "# Processes of one that had ended, sglang:30000, were left." in text


@pytest.mark.parametrize(
    "word", ["a\x1b[31mb", "c\x9b31m", "tab\tnew\nline", "\x7f", 'quote"back\\slash', "ü"]
)
def test_odd_words_are_kept_as_they_are_and_cannot_move_a_cursor(word: str) -> None:
    text = text_of(drafted(argv=("/usr/bin/python3", "--x", word)))
    assert loading.parse(text).servers["main"].command[-1] == word
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize(
    ("target", "host"),
    [("local", "local"), ("root@10.0.0.5:2222", "gpubox"), ("box.example.org", "box.example.org")],
)
def test_a_host_is_called_as_the_operator_calls_it(target: str, host: str) -> None:
    profile = loading.parse(text_of(target=target))
    assert profile.hosts[host].target == target


def test_what_it_explains_fits_an_old_terminal() -> None:
    text = text_of(drafted(), Drafted(server=server(), found=None))
    assert [line for line in text.splitlines() if line.startswith("# ") and len(line) > 79] == []


def test_every_command_that_it_names_can_be_given() -> None:
    named = re.findall(r"^# (specdash [^;\n]+)|: (specdash [a-z ]+)$", text_of(drafted()), re.MULTILINE)
    assert len(named) > 3
    for alone, behind in named:
        check_command_line(alone or behind)


def test_two_servers_get_two_names() -> None:
    text = text_of(drafted(), drafted(name="sglang:30001"), drafted(name="sglang:30001"))
    assert list(tomli.loads(text)["servers"]) == ["sglang-30000", "sglang-30001", "sglang-30001-2"]


def test_the_unit_that_manages_it_is_its_launcher() -> None:
    found = drafted(how="systemd", unit="sglang.service")
    assert loading.parse(text_of(found)).servers["main"].launcher == "systemd:sglang.service"


def test_only_absolute_paths_of_a_command_line_are_files_and_the_log_is_none() -> None:
    argv = ("/usr/bin/python3", "--a", "/x", "--b=/y", "rel/z", "/log", "/x")
    assert paths_of(argv, "/log") == ("/x", "/y")
