"""Which profile counts, and how it comes from its file; every mistake in it is told at once."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, ClassVar, Final

from specdash import ownfiles
from specdash.errors import SpecdashError
from specdash.profile.document import FILE, Mistake, Profile
from specdash.wording import why

_ANOTHER: Final = "mend that, or name another file"


class ProfileError(SpecdashError):
    """A profile that cannot be used; all its mistakes."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path | str, mistakes: tuple[Mistake, ...]) -> None:
        first = mistakes[0].text(path)
        named = "" if Path(path) in places() else f" {shlex.quote(str(path))}"
        # No number: only the check, which has the whole program at hand, knows all of them.
        words = f"there are more mistakes: specdash config check{named} shows all"
        super().__init__(first, words if len(mistakes) > 1 else None)
        self.path = path
        self.mistakes = mistakes


def places(given: Path | None = None) -> list[Path]:
    """Where a profile is looked for, in this order; only the given one where one was given."""
    import platformdirs

    if given is not None:
        return [given]
    return [Path(FILE).absolute(), platformdirs.user_config_path("specdash") / FILE]


def find(given: Path | None = None) -> Path | None:
    """The profile that counts, or None where there is none.

    Raises ``SpecdashError`` where the one that was asked for is not there, or one cannot be read.
    """
    found = next(filter(is_there, places(given)), None)
    if found is None and given is not None:
        raise SpecdashError(f"{given}: there is no such profile", "specdash init TARGET writes one")
    return found


def is_there(path: Path) -> bool:
    """Something lies where a profile is looked for. Raises ``SpecdashError`` where that cannot be one."""
    try:
        ownfiles.check(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise SpecdashError(f"{path}: {why(error)}", _ANOTHER) from None
    return True


def text_of(path: Path) -> str:
    """What stands in a profile, without the mark that some editors put before it.

    Raises ``SpecdashError`` where it cannot be read.
    """
    try:
        data = ownfiles.data_of(path)
    except OSError as error:
        raise SpecdashError(f"{path}: {why(error)}", _ANOTHER) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProfileError(path, (Mistake(key="", line=line, says=why(error)),)) from None


def load(given: Path | None = None) -> Profile:
    """The profile that counts; an empty one where there is none. Raises ``ProfileError``."""
    path = find(given)
    if path is None:
        return Profile()
    return parse(text_of(path), path)


def parse(text: str, path: Path | str = FILE) -> Profile:
    """A profile from its text. Raises ``ProfileError`` with every mistake."""
    from specdash.profile.check import read

    found, mistakes = read(text)
    if mistakes or found is None:
        raise ProfileError(path, tuple(mistakes))
    return found.profile


def schema() -> dict[str, Any]:
    """The profile as JSON Schema: an editor that knows it completes and checks."""
    from specdash.profile.schema import schema as built

    return built()


def shown_path(path: Path) -> str:
    """A path as it is typed: the home folder as ``~``."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is none
    text = str(path)
    return f"~{text[len(home) :]}" if home != "/" and text.startswith(home + os.sep) else text
