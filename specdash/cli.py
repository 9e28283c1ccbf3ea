"""The ``specdash`` command. Commands are imported when they are called, not before.

Exit codes: 0 fine, 1 a problem was found or an action failed, 2 usage, 3 could not connect, 4 refused.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import inspect
import io
import os
import sys
import threading
from collections.abc import Collection, Sequence
from typing import Final, NoReturn

import click

from specdash import __version__
from specdash.commands import COMMANDS, EXIT_CODES
from specdash.errors import SpecdashError
from specdash.loading import loading
from specdash.sanitise import clean_line
from specdash.wording import nearest

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})

COMPLETION: Final = "_SPECDASH_COMPLETE"
"""Set by a shell that wants to know how a word may go on; click's own name for it."""
_DOCUMENTS: Final = frozenset({"--json", "--html", "--csv", "export"})
"""Words for what other programs read: that is UTF-8, whatever the terminal can show."""
_EXAMPLES: Final = "\b\nExamples:\n"


class LazyCommands(click.Group):
    """A group whose commands are listed without being imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a new operator needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one that was asked for; None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        with loading():
            module = importlib.import_module(f"specdash.commands.{cmd_name}")
        command: click.Command = module.command
        _examples_last(command)
        if COMPLETION in os.environ:
            from specdash.completing import teach

            teach(cmd_name, command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest command where there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            said = f"{error.message.removesuffix('.')}{nearest(args[0], COMMANDS)}"
            raise click.UsageError(said, error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _examples_last(command: click.Command) -> None:
    """Examples stand at the end of a command's help, where the eye is when it has been printed."""
    about, examples, rows = inspect.cleandoc(command.help or "").partition(_EXAMPLES)
    if examples:
        command.help = about.rstrip()
        command.epilog = "\n\n".join(filter(None, (command.epilog, f"{examples}{rows}".rstrip())))
    if isinstance(command, click.Group):
        for part in command.commands.values():
            _examples_last(part)


@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, "-V", "--version", message="specdash %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Mission control for an LLM inference server on a GPU host that you reach over SSH.

    \b
    specdash demo                    try it without a host
    specdash connect root@gpubox     watch the servers of a host
    specdash log /var/log/sglang.log read a log, no connection
    specdash help quickstart         the first ten minutes
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code.

    What an operator can do something about is one line on stderr, never a traceback; set
    ``SPECDASH_DEBUG=1`` to see the traceback of an error of ours.
    """
    before = threading.enumerate()
    with loading():
        _have_streams()
        _set_streams(sys.argv if arguments is None else arguments)
    output = sys.stdout
    try:
        code = root.main(args=arguments, prog_name="specdash", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        code = exit_.exit_code
    except click.UsageError as error:
        _complain(error.format_message(), _hint(error))
        code = error.exit_code
    except click.ClickException as error:
        _complain(error.format_message())
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        code = 130
    except SystemExit as left:
        # click changes the stream where the reader of our output has gone (``| head``): that is no trouble.
        code = left.code if sys.stdout is output else 0
    except BrokenPipeError:
        code = 0
        _hush()
    except SpecdashError as error:
        _complain(error.message, error.hint)
        code = error.exit_code
    except Exception as error:
        if os.environ.get("SPECDASH_DEBUG"):
            raise
        code = 130 if _was_interrupted(error) else 1
        _complain(*(("interrupted",) if code == 130 else _in_words(error)))
        _hush()
    _leave(code if isinstance(code, int) else 0, before)


def _was_interrupted(error: BaseException | None) -> bool:
    """Python before 3.12 makes a RuntimeError of a ctrl+c that comes while a class is being made."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _was_interrupted(error.__cause__ or error.__context__)
    )


def _in_words(error: Exception) -> tuple[str, str | None]:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return f"cannot write: {error.strerror}", None
    if isinstance(error, RuntimeError) and "home directory" in str(
        error
    ):  # pathlib's and platformdirs' words
        return "no home folder is known here", "set HOME"
    return f"{type(error).__name__}: {error}", "this is a fault of specdash; SPECDASH_DEBUG=1 shows where"


def _have_streams() -> None:
    """Point what was closed (``>&-``) to nowhere: else the next file opened would be taken for it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                if not _is_open(number):
                    os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
                setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123


def _set_streams(arguments: Sequence[str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a glyph gets a question mark
    if isinstance(sys.stdout, io.TextIOWrapper) and not _DOCUMENTS.isdisjoint(arguments):
        sys.stdout.reconfigure(encoding="utf-8")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _hush() -> None:
    """What is still to be written goes nowhere: the interpreter would complain about it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


MOMENT_S = 0.3
"""How long a thread that is about to end is waited for."""


def _leave(code: int, before: Collection[threading.Thread]) -> NoReturn:
    """End, whatever threads of a screen are left: one that reads a vanished terminal never would.

    ``before``: those that were there when the command began, which are its caller's.
    """
    ours = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    for thread in ours:
        thread.join(MOMENT_S)
    if any(thread.is_alive() for thread in ours):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _complain(message: str, hint: str | None = None) -> None:
    with loading():  # a second ctrl+c wants no word more
        from specdash.commands.folding import tell

        line = clean_line(" ".join(message.split()))
        with contextlib.suppress(OSError):  # a full or closed stderr hears nothing; the exit code still tells
            tell(f"specdash: {line}{f' ({hint})' if hint else ''}", err=True)


def _hint(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "specdash"
    return f"{path} --help shows the usage"
