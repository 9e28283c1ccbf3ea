"""A terminal may vanish while we draw on it: its window is closed, its connection breaks.

Textual 8.2.8 writes in a thread that ends at the first error; the program then waits for ever to hand it
more. Here a write to a terminal that is gone is a write to nowhere, and the program can end.
"""

from __future__ import annotations

from typing import IO, Any, cast

from textual.driver import Driver


class ForgivingFile:
    """A file whose reader may have gone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.gone = False

    def write(self, text: str) -> int:
        """Write, while there is somebody to read."""
        if not self.gone:
            try:
                return self._file.write(text)
            except (OSError, ValueError):  # ValueError: it is closed
                self.gone = True
        return len(text)

    def flush(self) -> None:
        """Flush, while there is somebody to read."""
        if not self.gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self.gone = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def forgiving(driver_class: type[Driver]) -> type[Driver]:
    """The same driver over a forgiving file; a driver without a file of its own is left as it is."""

    class ForgivingDriver(driver_class):  # type: ignore[misc,valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            file = getattr(self, "_file", None)
            if file is not None:
                self._file = cast("IO[str]", ForgivingFile(file))

    ForgivingDriver.__name__ = driver_class.__name__
    return ForgivingDriver
