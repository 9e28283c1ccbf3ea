"""``specdash notify``: who is told of what, and whether that works."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from specdash.commands.folding import tell
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.profile.document import Notify


@click.command(short_help="Who is told of what outside the terminal; --test sends a message.")
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--test", is_flag=True, help="Send a message now, quiet hours or not.")
@click.option(
    "--profile", type=click.Path(path_type=Path), help="The profile; else specdash.toml here, else yours."
)
def command(names: tuple[str, ...], test: bool, profile: Path | None) -> None:
    """The rules [notify.NAME] of the profile. connect and watch tell by them for as long as they run.

    An address is never in the profile, a log or the history: a rule names the variable or the command that
    has it. Exit code 1: a test message could not be sent.

    \b
    Example of a rule:
      [notify.phone]
      url_env = "PHONE_URL"              or url_command = ["pass", "phone"]
      on = ["stalled", "crashed"]        what is told
      quiet = "22:00-07:00"              when not
      wake = ["crashed"]                 and what then all the same

    \b
    Examples:
      specdash notify
      specdash notify phone --test
    """
    from specdash.profile.loading import load
    from specdash.wording import nearest

    rules = load(profile).notify
    for name in names:
        if name not in rules:
            known = ", ".join(rules) or "it has none"
            raise SpecdashError(
                f"the profile has no [notify.{name}]", nearest(name, rules).removeprefix("; ") or known
            )
    chosen = {name: rule for name, rule in rules.items() if not names or name in names}
    if not chosen:
        raise SpecdashError("the profile has no [notify.NAME]", "specdash notify --help shows one")
    good = True
    for name, rule in chosen.items():
        tell(clean_line(f"{name}: {_about(rule)}"))
        if test:
            good = _test(name, rule) and good
    sys.exit(0 if good else 1)


def _about(rule: Notify) -> str:
    where = f"by ${rule.url_env}" if rule.url_env else f"by {(rule.url_command or ('?',))[0]}"
    hosts = f" of {', '.join(rule.hosts)}" if rule.hosts else ""
    quiet = f"; quiet {rule.quiet}" if rule.quiet else ""
    wake = f", but {', '.join(rule.wake)}" if rule.quiet and rule.wake else ""
    return f"{', '.join(rule.on)}{hosts} {where}{quiet}{wake}"


def _test(name: str, rule: Notify) -> bool:
    from specdash.alerting.sending import send

    try:
        send(rule, "specdash", f"this is a test of [notify.{name}]")
    except SpecdashError as error:
        tell(clean_line(f"  ✖ {error}"))
        return False
    click.echo("  ✓ sent")
    return True
