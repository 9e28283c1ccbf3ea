"""known_hosts files as people have them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest

from specdash.remote.hostkeys import host_name, public_text, read_known, refusal, remember, type_word

ED25519, OTHER = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519")
ECDSA = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
RSA = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
ED, OT, EC, RS = (public_text(key) for key in (ED25519, OTHER, ECDSA, RSA))


def word(
    tmp_path: Path, text: str, host: str = "gpubox", port: int = 22, key: asyncssh.SSHKey = ED25519
) -> str:
    file = tmp_path / "known_hosts"
    file.write_bytes(text.encode("latin-1"))
    return read_known([file], host, port).judge(key).word


@pytest.mark.parametrize(
    "line",
    [
        f"gpubox {ED}",
        f"gpubox,10.0.0.7 {ED} someone@somewhere",
        f"GPUBOX {ED}",
        f"gpu* {ED}",
        f"*,!login {ED}",
        f"gpubox {ED} caf\xe9",
        f"this is junk\nx ssh-foo AAAA\nlonely\n@revoked\n\ngpubox {ED}",
        f"gpubox {RS}\ngpubox {ED}",
        f"gpubox {OT}\ngpubox {ED}",
    ],
)
def test_a_line_that_names_host_and_key_makes_it_known(tmp_path: Path, line: str) -> None:
    assert word(tmp_path, line) == "known"


@pytest.mark.parametrize(
    "line",
    ["", f"# gpubox {ED}", f"otherbox {ED}", f"gpubox2 {ED}", f"*,!gpubox {ED}", f"@cert-authority * {ED}"],
)
def test_without_such_a_line_it_is_unknown(tmp_path: Path, line: str) -> None:
    assert word(tmp_path, line) == "unknown"


@pytest.mark.parametrize("line", [f"gpubox {OT}", f"gpu* {OT}", f"gpubox {RS}"])
def test_another_key_for_the_host_means_changed(tmp_path: Path, line: str) -> None:
    assert word(tmp_path, line) == "changed"


@pytest.mark.parametrize(
    "text",
    [f"@revoked * {ED}\n", f"@revoked gpubox {ED}\ngpubox {ED}\n", f"gpubox {ED}\n@revoked gpu* {ED}\n"],
)
def test_revoked_wins_over_known(tmp_path: Path, text: str) -> None:
    assert word(tmp_path, text) == "revoked"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"[gpubox]:2222 {ED}", "known"),
        (f"[gpubox]:2222 {OT}", "changed"),
        (f"[gpu*]:* {ED}", "known"),
        (f"gpubox {ED}", "known"),  # as OpenSSH: the same key on another port
        (f"gpubox {OT}", "unknown"),  # as OpenSSH: another machine behind the same address
        (f"gpubox {OT}\n[gpubox]:2222 {ED}", "known"),
        (f"@revoked gpubox {ED}\n[gpubox]:2222 {ED}", "revoked"),
    ],
)
def test_another_port_is_another_name(tmp_path: Path, text: str, expected: str) -> None:
    assert word(tmp_path, text, port=2222) == expected


def test_an_alias_is_the_name_under_which_the_key_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"cluster {ED}\n")
    assert read_known([file], "10.0.0.7", 2222, alias="cluster").judge(ED25519).word == "known"


def test_a_missing_file_says_nothing_and_an_unreadable_line_is_told(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"gpubox {ED}\nlonely\n|1|bad|hash {ED}\n")
    known = read_known([tmp_path / "none", file], "gpubox", 22)
    assert known.judge(ED25519).word == "known"
    assert known.unreadable == (f"{file} line 2", f"{file} line 3")


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize(
    ("host", "port"), [("gpubox", 22), ("gpubox", 2222), ("fe80::1", 22), ("fe80::1", 2222)]
)
def test_what_is_written_is_found_again_by_us_and_by_ssh_keygen(
    tmp_path: Path, host: str, port: int, hashed: bool
) -> None:
    file = tmp_path / ".ssh" / "known_hosts"
    name = host_name(host, port)
    remember(file, name, ED25519, hashed=hashed)
    assert read_known([file], host, port).judge(ED25519).word == "known"
    assert (name in file.read_text()) is not hashed
    found = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, check=False)
    assert found.returncode == 0


def test_appending_keeps_what_was_there_and_the_files_own_mode(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"other {OT}")  # no newline at its end
    file.chmod(0o640)
    remember(file, "gpubox", ED25519)
    assert file.read_text() == f"other {OT}\ngpubox {ED}\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_the_host_is_asked_for_the_key_it_is_known_by_first(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"gpubox {RS}\n")
    assert read_known([file], "gpubox", 22).algorithms()[:3] == [
        "rsa-sha2-512",
        "rsa-sha2-256",
        "ssh-ed25519",
    ]
    assert read_known([], "gpubox", 22).algorithms()[0] == "ssh-ed25519"
    assert "ssh-rsa" not in read_known([file], "gpubox", 22).algorithms()
    file.write_text(f"@cert-authority * {EC}\n")
    assert read_known([file], "gpubox", 22).algorithms()[0] == "ssh-ed25519-cert-v01@openssh.com"


def test_a_refusal_names_the_line_of_the_key_of_the_same_type(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"gpubox {EC}\ngpubox {OT}\n")
    known = read_known([file], "gpubox", 22)
    error = refusal(known.judge(ED25519), "gpubox", known.name)
    assert f"({file} line 2)" in error.message
    assert OTHER.get_fingerprint() in error.message
    assert ED25519.get_fingerprint() in error.message
    assert f"ssh-keygen -R 'gpubox' -f {file}" in (error.hint or "")


def test_key_types_are_called_what_ssh_keygen_calls_them() -> None:
    assert [type_word(key) for key in (ED25519, ECDSA, RSA)] == ["ED25519", "ECDSA", "RSA"]
