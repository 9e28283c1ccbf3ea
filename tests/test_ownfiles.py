"""Whatever lies where one of the operator's files is looked for, it is said in a line, and nothing hangs."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specdash import ownfiles
from specdash.errors import SpecdashError
from specdash.history.recording import Recording
from specdash.history.store import Store
from specdash.intake import ownengines
from specdash.operations.journal import Journal
from specdash.profile import loading
from specdash.remote.aliases import aliases
from specdash.remote.hostkeys import read_known
from specdash.remote.options import LinkOptions
from specdash.remote.sshconfig import config_files, resolve
from specdash.remote.target import parse_target
from specdash.tui import keymap, themes
from specdash.wording import why

KINDS = {
    "folder": "a folder, and a plain file is wanted there",
    "pipe": "a pipe (FIFO), and a plain file is wanted there",
    "device": "a device, and a plain file is wanted there",
    "socket": "a socket, and a plain file is wanted there",
    "large": "too large, 5 MiB: at most 4 MiB are read",
}


@pytest.fixture(params=KINDS)
def odd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Something under the name of a file that is none, or far too large for one that a person writes."""
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    path = tmp_path / "odd.toml"
    if request.param == "folder":
        path.mkdir()
    elif request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    elif request.param == "large":
        path.touch()
        os.truncate(path, 5 << 20)
    with socket.socket(socket.AF_UNIX) as listener:
        if request.param == "socket":
            listener.bind(path.name)
        yield path


def _raised(read: Callable[[], object]) -> str:
    with pytest.raises((SpecdashError, themes.ThemeError)) as error:
        read()
    return str(error.value)


def _identity(path: Path) -> object:
    return resolve(parse_target("box"), LinkOptions(ssh_config=Path(os.devnull), identity=path))


SMALL: dict[str, Callable[[Path], str]] = {
    "profile": lambda path: _raised(lambda: loading.load(path)),
    "keys": lambda path: keymap.load(path).problems[0],
    "theme": lambda path: _raised(lambda: themes.load_file(path)),
    "engine": lambda path: ownengines.read(path.parent).problems[0],
    "--ssh-config": lambda path: _raised(lambda: config_files(LinkOptions(ssh_config=path))),
    "--identity": lambda path: _raised(lambda: _identity(path)),
}


@pytest.mark.parametrize("read", SMALL.values(), ids=SMALL)
def test_what_is_no_file_of_a_person_is_named_in_a_line(
    odd: Path, read: Callable[[Path], str], request: pytest.FixtureRequest
) -> None:
    said = read(odd)
    assert f"{odd}: {KINDS[request.node.callspec.params['odd']]}" in said
    assert "\n" not in said


def test_a_history_and_a_recording_may_be_large_but_are_plain_files(
    odd: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["odd"]
    for said in (_raised(lambda: Store(odd)), _raised(lambda: Recording(odd))):
        assert str(odd) in said
        assert kind == "large" or KINDS[kind] in said


def test_a_profile_where_it_is_looked_for_is_not_passed_over(odd: Path) -> None:
    odd.rename("specdash.toml")
    assert str(odd.with_name("specdash.toml")) in _raised(loading.find)


def test_what_cannot_be_read_on_the_way_is_left_out(odd: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"Host gpubox\nInclude {odd}\n")
    assert list(aliases([config, odd])) == ["gpubox"]
    folder = tmp_path / "journal"
    folder.mkdir()
    odd.rename(folder / "kill-1.jsonl")
    assert list(Journal(folder).all()) == []


def test_keys_of_hosts_that_cannot_be_read_refuse_the_connection(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "known_hosts")
    with pytest.raises(OSError, match="a pipe") as error:
        read_known([tmp_path / "known_hosts"], "gpubox", 22)
    assert error.value.filename == str(tmp_path / "known_hosts")


def test_dev_null_is_an_empty_file_and_what_is_missing_is_called_missing(tmp_path: Path) -> None:
    assert ownfiles.text_of(Path(os.devnull)) == ""
    assert loading.load(Path(os.devnull)).hosts == {}
    (tmp_path / "link").symlink_to(os.devnull)
    assert keymap.load(tmp_path / "link").problems == ()
    assert ownfiles.trouble(tmp_path / "missing") == f"there is no file {tmp_path / 'missing'}"
    assert ownfiles.trouble(tmp_path / "link") is None


def test_a_file_that_may_not_be_read_says_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.toml"
    path.write_text("")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)  # root may read everything
    assert keymap.load(path).problems == (f"{path}: may not be read: mend its rights",)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk of {folder} is full: make room there"),
        (errno.EDQUOT, "your quota on the disk of {folder} is used up: make room there"),
        (errno.EROFS, "the disk of {folder} is mounted read-only: mount it for writing, or choose another"),
        (errno.EIO, "the disk of {folder} fails: its kernel log says how"),
        (errno.ENOENT, "there is no folder {folder}: make it, or mount its disk"),
        (errno.EACCES, "{folder} may not be written: mend its rights"),
        (errno.EFBIG, "File too large ({folder}/new)"),
    ],
)
def test_a_file_that_cannot_be_written_names_the_folder_and_what_helps(
    number: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(OSError) as caught, ownfiles.writing(tmp_path / "new"):  # noqa: PT011 (its words)
        raise OSError(number, os.strerror(number))
    assert why(caught.value) == words.format(folder=tmp_path)
    assert caught.value.errno == number


def test_that_a_file_is_there_already_is_no_fault_of_its_disk(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="File exists"), ownfiles.writing(tmp_path):
        tmp_path.mkdir()
