"""The log with its frame: which file, whether it follows, how much there is; or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdash.monitor.importance import successor
from specdash.monitor.serverparts import LogSource
from specdash.monitor.state import HostState, Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, row
from specdash.tui.widgets.logreader import LogReader
from specdash.tui.widgets.painted import set_frame
from specdash.tui.widgets.panelrows import text_rows

if TYPE_CHECKING:
    from specdash.logs.buffer import LogBuffer

ROOM_FOR_NAME = 100
"""Columns from which on the file's name stands beside a filter."""


def no_log_rows(source: LogSource | None, width: int) -> tuple[Row, ...]:
    """Why there is nothing to read."""
    if source is None:
        return (row(dim(" its log was not found yet")),)
    if source.error:
        return tuple(
            row(" ", line) for line in text_rows(f"{source.path}: {source.error}", width - 2, "warn")
        )
    if source.path is None:
        return tuple(row(" ", line) for line in text_rows(source.says, width - 2))
    told = f"{source.path} is empty so far" if source.size == 0 else f"waiting for {source.path}"
    return tuple(row(" ", line) for line in text_rows(told, width - 2, "dim"))


def _silent_s(state: HostState, server: Server | None) -> float | None:
    """For how long a living server has written nothing, as far as that is heard."""
    if server is None or server.gone_at is not None or server.last_line_at is None or state.old:
        return None
    return state.now - server.last_line_at


def short_path(path: str) -> str:
    """The file's own name; of one that is only called ``log`` with its folder."""
    parts = path.split("/")
    return "/".join(parts[-2:] if parts[-1] == "log" else parts[-1:])


class LogPane(LogReader):
    """A log view that knows whose log it is."""

    server: Server | None = None
    _led_to: tuple[str, int] | None = None
    _stayed: str | None = None
    """The dead server whose last line was held when another began to write after it."""
    _heir: Server | None = None
    """Who writes into the log of the shown server, which is gone."""

    def show(self, state: HostState, server: Server | None, buffer: LogBuffer | None) -> None:
        """Show the log of a server."""
        if self.server is not None and server is not None and self.server.key != server.key:
            self.forget_sought()
            self.to_end()
        if server is not None and (self.server is None or self.server.engine != server.engine):
            from specdash.intake.rules import grammar_of  # not needed for the first picture

            self.grammar = grammar_of(server.engine)
            self.repaint()
        self.server = server
        self.silent_s = _silent_s(state, server)
        faded = state.old
        if faded != self.faded:
            self.faded = faded
            self.repaint()
        self.look(buffer, state.now, no_log_rows(server.log, max(20, self.size.width)) if server else ())
        self._lead_to_root(server)
        self._stay_at_end(state, server)
        self.retitle()

    def _lead_to_root(self, server: Server | None) -> None:
        """A crash: show its root cause once, unless the operator already reads something else."""
        if server is None or server.state != "crashed" or self.buffer is None or not self.buffer.whole:
            return
        root = next((diagnosis for diagnosis in server.diagnoses if diagnosis.root and diagnosis.line), None)
        if root is None or root.line is None or not self.buffer.first_line <= root.line <= self.buffer.lines:
            return
        if self._led_to != (server.key, root.line) and self.follow and not self.filter_words:
            self._led_to = (server.key, root.line)
            self.jump(root.line)
            self.call_after_refresh(self.jump, root.line)  # the panel that explains it takes rows first

    def _stay_at_end(self, state: HostState, server: Server | None) -> None:
        """A dead server's last line is held, once, where another one goes on writing into the same file."""
        buffer, self._heir = self.buffer, None
        if server is None or server.gone_at is None or buffer is None or buffer.begun == 1:
            return
        heir = successor(server, state.servers)
        if heir is None or heir.log is None or server.log is None or heir.log.path != server.log.path:
            return
        self._heir = heir
        if self._stayed != server.key and self.follow and not self.filter_words:
            self._stayed = server.key
            self.jump(buffer.begun - 1)

    def on_resize(self) -> None:
        """The panel that explains a crash may take its rows late: what was led to stays in sight."""
        if self._led_to is not None and self.current == self._led_to[1] and not self.follow:
            self.call_after_refresh(self.jump, self.current)

    def retitle(self) -> None:
        """Say in the frame what is so now; the keys say what can be done."""
        set_frame(self, *self.heading(), self.size.width)

    def heading(self) -> tuple[Row, Row]:
        """Above: file and mode. Below: how much there is."""
        path = self.server.log.path if self.server and self.server.log else None
        told = path if path and not (self.filter_words and self.size.width < ROOM_FOR_NAME) else None
        name = dim(f"  {short_path(told)}" if told else "")
        title = row(Span("log", "strong"), name)
        buffer = self.buffer
        if buffer is None:
            return title, ()
        if self.follow:
            title = row(title, dim("  ⇣ FOLLOW"))
        else:
            title = row(title, Span("  ‖ HELD", "accent"))
            if self.waiting:
                title = row(title, dim(f" +{say.plural(self.waiting, 'line')}"))
        if self._heir is not None:
            title = row(title, Span(f"  pid {self._heir.pid} writes it now", "warn"))
        if not buffer.whole:
            return row(title, *self._sought(buffer)), row(
                dim("the last lines; those before are on their way")
            )
        before = buffer.file_from - 1
        earlier = f" and {before:,} of the file before" if before else ""
        words = [say.plural(buffer.lines - before, "line") + earlier]
        if self.current is not None:
            here = buffer.numbers(self.current, self.current)
            words[0] = f"line {here.first:,}{here.of}"
        if self._heir is None:  # what is counted is of who writes now
            since = f" since line {buffer.begun - before:,}" if buffer.begun > buffer.file_from else ""
            words += [say.plural(buffer.warnings, "warning"), say.plural(buffer.errors, "error") + since]
        words += self._polls()
        if buffer.first_line > 1:
            oldest = buffer.numbers(buffer.first_line, buffer.first_line)
            words.append(f"kept from line {oldest.first:,}{'' if oldest.newest else oldest.of}")
        return row(title, *self._sought(buffer)), row(dim(" · ".join(words)))

    def _sought(self, buffer: LogBuffer) -> list[Row]:
        """The filter and the search, as long as they are on."""
        out = []
        share = self.share
        far = "" if share is None else f", {share * 100:.0f} % looked through; esc stops"
        matches = self.lens.matches if self.lens is not None else None
        if matches is not None:
            many = f", {self.matching:,} of {say.plural(buffer.lines, 'line')}"
            end = far or ("" if self.needle else "; esc takes it away")
            out.append(row(Span("  filter: ", "accent"), Span(self.filter_words), dim(many + end)))
        if self.needle:
            hit = self.landed
            number = f" {hit.number:,} of {hit.many:,}" if hit is not None else ""
            out.append(row(dim("  /"), Span(self.needle), dim(number + ("" if matches else far))))
        elif far and matches is None:
            out.append(row(dim(far.replace(", ", "  ", 1))))
        return out

    def _polls(self) -> list[str]:
        """How many access lines of polls, ours and those of others, are not shown (``p`` shows them)."""
        lens = self.lens
        hidden = lens is not None and not lens.polls and lens.matches is None
        many = lens.buffer.polls.everyones if lens is not None and hidden else 0
        return [f"{say.plural(many, 'poll')} hidden"] if many else []

    def nothing(self) -> tuple[Row, ...]:
        """Why no row is shown."""
        if self.filter_words and self.buffer is not None and self.buffer.lines:
            far = self.lens is not None and self.lens.matches is not None and self.lens.matches.share < 1
            word = " no line so far matches " if far else " no line matches "
            return (
                row(dim(word), Span(self.filter_words)),
                row(dim(" esc takes the filter away, & changes it")),
            )
        return super().nothing()
