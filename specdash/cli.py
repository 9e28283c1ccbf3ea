"""The ``specdash`` command. Commands are imported when they are called, not before.

Exit codes: 0 fine, 1 a problem was found or an action failed, 2 usage, 3 could not connect, 4 refused.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import threading
from collections.abc import Sequence
from typing import Final, NoReturn

import click

from specdash import __version__
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

COMMANDS: Final[dict[str, str]] = {
    "connect": "The dashboard of one or more hosts.",
    "watch": "The same without any key that changes something.",
    "status": "One look at a host: GPUs, servers, phases, readiness.",
    "log": "Milestones, verdict and diagnoses of a log file; no connection.",
    "check": "Preflight: would a launch work?",
    "kill": "Stop a server, whatever it takes, and verify its GPUs.",
    "clean": "Free GPU memory that a dead server left.",
    "launch": "Start a server of the profile, or the last one as it was.",
    "restart": "Stop, verify, preflight, start, follow to a token.",
    "patch": "Change values in a config file on the host.",
    "undo": "Take the newest patch back.",
    "doctor": "What can be seen and done on a host, and why not the rest.",
    "replay": "A recording through the same screens.",
    "demo": "The dashboard on a simulated host.",
    "sim": "Only the simulated host (Linux).",
    "keys": "All keys, by scope and risk.",
    "config": "The profile: check it, find it, its schema.",
    "themes": "The colour themes that can be chosen.",
}
"""Name → what ``--help`` says of it. The command is ``specdash.commands.NAME.command``."""


class LazyCommands(click.Group):
    """A group whose commands are listed without being imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a new operator needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one that was asked for; None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"specdash.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyCommands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", message="specdash %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Mission control for an LLM inference server on a GPU host that you reach over SSH.

    \b
    specdash demo                    try it without a host
    specdash connect root@gpubox     watch the servers of a host
    specdash log /var/log/sglang.log read a log, no connection
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code.

    What an operator can do something about is one line on stderr, never a traceback; set
    ``SPECDASH_DEBUG=1`` to see the traceback of an error of ours.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a glyph gets a question mark
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
    except BrokenPipeError:
        # The reader of our output has gone (``| head``): no complaint, and none from the interpreter either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except SpecdashError as error:
        _complain(error.message, error.hint)
        code = error.exit_code
    except Exception as error:
        if os.environ.get("SPECDASH_DEBUG"):
            raise
        _complain(
            f"{type(error).__name__}: {error}", "this is a fault of specdash; SPECDASH_DEBUG=1 shows where"
        )
        code = 1
    _leave(code if isinstance(code, int) else 0)


def _leave(code: int) -> NoReturn:
    """End, whatever threads of a screen are left: one that reads a vanished terminal never would."""
    main_thread = threading.main_thread()
    if any(thread is not main_thread and not thread.daemon for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _complain(message: str, hint: str | None = None) -> None:
    line = clean_line(" ".join(message.split()))
    click.echo(f"specdash: {line}{f' ({hint})' if hint else ''}", err=True)


def _hint(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "specdash"
    return f"{path} --help shows the usage"
