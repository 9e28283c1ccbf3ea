"""``python -m specdash.sim`` is ``specdash sim`` without the rest of the command line."""

from specdash.commands.sim import command

command(prog_name="specdash sim")
