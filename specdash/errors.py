"""The one tree of errors that are meant for the operator: a sentence, what to do, and an exit code."""

from __future__ import annotations

from typing import ClassVar


class SpecdashError(Exception):
    """Base of every error that is meant to be read by the operator."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to do about it, or None."""

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class RequestError(SpecdashError):
    """The host refused a request, or could not do it; its own words."""
