"""Which number a line has in its file: received lines are counted through, and files begin anew."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class Numbers(NamedTuple):
    """Where lines stand in their file, as an editor counts them."""

    first: int
    last: int
    many: int
    """Lines of that file."""
    newest: bool
    """It is the file that is there now; else one before it, by another name or gone."""

    @property
    def of(self) -> str:
        """Behind a line's number: of how many, and of which file."""
        return f" of {self.many:,}{'' if self.newest else ' of the file before'}"


class Files:
    """Where each file begins that a log was: it may be rotated, cut to nothing or replaced."""

    def __init__(self) -> None:
        self._begin = [1]

    @property
    def newest(self) -> int:
        """The first line of the file that is there now."""
        return self._begin[-1]

    def anew(self, line: int) -> None:
        """With this line another file begins; one that nothing was received of is forgotten."""
        if line > self.newest:
            self._begin.append(line)

    def numbers(self, first: int, last: int, lines: int) -> Numbers:
        """Of received lines, of which there are ``lines``, in the file that they stand in."""
        at = bisect_right(self._begin, first)
        begins = self._begin[at - 1]
        end = self._begin[at] - 1 if at < len(self._begin) else lines
        return Numbers(first - begins + 1, last - begins + 1, end - begins + 1, at == len(self._begin))
