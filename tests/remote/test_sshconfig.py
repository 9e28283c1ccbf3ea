"""ssh_config as we resolve it, hop by hop."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from specdash.remote.errors import LinkError, TargetError
from specdash.remote.options import LinkOptions
from specdash.remote.sshconfig import Hop, config_files, resolve
from specdash.remote.target import parse_target


def hops(tmp_path: Path, text: str, target: str = "box", **options: object) -> list[Hop]:
    file = tmp_path / "config"
    file.write_text(text)
    return resolve(parse_target(target), LinkOptions(ssh_config=file, **options))  # type: ignore[arg-type]


def test_without_a_line_the_defaults_of_ssh_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    (hop,) = hops(tmp_path, "")
    assert (hop.hostname, hop.port, hop.user, hop.policy) == ("box", 22, getpass.getuser(), "ask")
    assert hop.user_files[0] == tmp_path / ".ssh" / "known_hosts"
    assert hop.global_files[0] == Path("/etc/ssh/ssh_known_hosts")
    assert hop.identities[0] == tmp_path / ".ssh" / "id_ed25519"
    assert hop.agent == "/run/agent"


def test_what_is_typed_wins_over_the_file(tmp_path: Path) -> None:
    (hop,) = hops(tmp_path, "Host box\n User deploy\n Port 2200\n HostName 10.0.0.7\n", "root@box:22")
    assert (hop.user, hop.port, hop.hostname, hop.host) == ("root", 22, "10.0.0.7", "box")


def test_the_port_option_fills_in_and_must_not_contradict(tmp_path: Path) -> None:
    assert hops(tmp_path, "Host box\n Port 2200\n", port=23)[0].port == 23
    with pytest.raises(TargetError, match="two ports"):
        hops(tmp_path, "", "box:22", port=23)


@pytest.mark.parametrize(
    ("word", "policy"),
    [
        ("yes", "yes"),
        ("ask", "ask"),
        ("accept-new", "accept-new"),
        ("no", "accept-new"),
        ("OFF", "accept-new"),
    ],
)
def test_strict_checking_is_read_and_never_means_unchecked(tmp_path: Path, word: str, policy: str) -> None:
    assert hops(tmp_path, f"Match host box\n  StrictHostKeyChecking {word}\n")[0].policy == policy


def test_tokens_and_none_are_understood_in_file_names(tmp_path: Path) -> None:
    (hop,) = hops(tmp_path, "UserKnownHostsFile %d/kh_%n\nGlobalKnownHostsFile none\nIdentityAgent none\n")
    assert hop.user_files == (Path("~/kh_box").expanduser(),)
    assert (hop.global_files, hop.agent) == ((), None)


def test_jump_hosts_are_resolved_in_order_each_by_its_own_lines(tmp_path: Path) -> None:
    text = (
        "Host box\n ProxyJump a,me@b:23\n"
        "Host a\n HostName 10.0.0.1\n ProxyJump outer\n"
        "Host b\n ProxyJump never\n"
    )
    found = hops(tmp_path, text)
    assert [(hop.name, hop.hostname, hop.port, hop.jump) for hop in found] == [
        *(("outer", "outer", 22, True), ("a", "10.0.0.1", 22, True), ("me@b:23", "b", 23, True)),
        ("box", "box", 22, False),
    ]


def test_the_jump_option_wins_over_the_file_and_over_a_proxy_command(tmp_path: Path) -> None:
    found = hops(tmp_path, "Host box\n ProxyCommand nc %h %p\n", jump="c")
    assert [hop.name for hop in found] == ["c", "box"]
    assert found[-1].proxy_command is None


def test_a_jump_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="never ends"):
        hops(tmp_path, "Host *\n ProxyJump box\n")


@pytest.mark.parametrize(
    "text", ["Port many\n", "StrictHostKeyChecking maybe\n", "Host box\n  Compression 7\n"]
)
def test_a_line_that_cannot_be_read_is_refused_with_file_or_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(LinkError) as caught:
        hops(tmp_path, text)
    assert caught.value.key == "ssh_config_divergence"
    assert not caught.value.retry
    assert "--via-openssh" in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LinkError) as caught:
        resolve(parse_target("box"), LinkOptions(ssh_config=file))
    assert f"{file} is no text" in str(caught.value)


def test_nothing_at_all_may_be_the_configuration() -> None:
    assert config_files(LinkOptions(ssh_config=Path("/dev/null"))) == (Path("/dev/null"),)


def test_files_that_are_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no file"):
        config_files(LinkOptions(ssh_config=tmp_path / "none"))
    with pytest.raises(TargetError, match="no file"):
        hops(tmp_path, "", identity=tmp_path / "none")


def test_a_named_key_is_offered_first_and_the_usual_ones_are_not(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch()
    assert hops(tmp_path, "IdentityFile /other\n", identity=key)[0].identities == (key, Path("/other"))
    assert hops(tmp_path, "", identity=key)[0].identities == (key,)
    jump, box = hops(tmp_path, "", identity=key, jump="outer")
    assert key not in jump.identities  # as with ssh -J: it is the key of the host
    assert jump.identities
    assert box.identities == (key,)
