"""Whoever mistypes a host of the ssh configuration is told which one was probably meant."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from specdash.remote.aliases import aliases, nearest
from specdash.remote.explain import explain
from specdash.remote.options import LinkOptions
from specdash.remote.sshconfig import resolve
from specdash.remote.target import parse_target

CONFIG = """
# Host commented
Host gpubox gpubox.lab
    HostName 10.0.0.7
Host=dgx2
host "with quotes"
Host *.lab !bastion web?
Include more/*.conf
Include = nowhere
Host "unclosed
Match host never
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.conf").write_text("Host jumpbox\nInclude config\n")
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


def test_the_names_of_a_configuration_and_its_included_files_are_known_without_patterns(config: Path) -> None:
    assert set(aliases([config])) == {"gpubox", "gpubox.lab", "dgx2", "with quotes", "jumpbox"}


@pytest.mark.parametrize("pattern", ["~nosuchuser/config", '""', "**x", "/", "["])
def test_what_cannot_be_included_has_no_names_and_ends_nothing(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "config"
    path.write_text(f"Host before\nInclude {pattern}\nHost behind\n")
    assert set(aliases([path])) == {"before", "behind"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpubx", "gpubox"),
        ("GPUBOX", "gpubox"),
        ("dgx", "dgx2"),
        ("jmpbox", "jumpbox"),
        ("gpubox", None),
        ("nosuchhost", None),
    ],
)
def test_the_nearest_name_is_found_or_none(config: Path, typed: str, meant: str | None) -> None:
    assert nearest(typed, [config]) == meant
    assert nearest(typed, [config.parent / "missing"]) is None


def test_a_name_without_an_address_comes_with_the_alias_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host gpubox\n  HostName 10.0.0.7\n")
    hop = resolve(parse_target("root@gpubix"), LinkOptions(ssh_config=path))[-1]
    error = explain(socket.gaierror(-2, "Name or service not known"), hop)
    assert str(error) == (
        "root@gpubix: the name does not resolve (Name or service not known) (did you mean gpubox?)"
    )
    profile = LinkOptions(ssh_config=path, others=("night-rig",))
    error = explain(socket.gaierror(-2, "unknown"), resolve(parse_target("nightrig"), profile)[-1])
    assert str(error).endswith("(did you mean night-rig?)"), "a host of the profile"
    other = resolve(parse_target("nosuchhost"), LinkOptions(ssh_config=path))[-1]
    assert "check the spelling" in str(explain(socket.gaierror(-2, "unknown"), other))
