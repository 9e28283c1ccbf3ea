"""The command line, one command a file.

May touch: every room, each when a command needs it.

What is told of all commands stands here, where none has to be imported.
"""

from __future__ import annotations

from typing import Final

COMMANDS: Final[dict[str, str]] = {
    "connect": "The dashboard of one or more hosts.",
    "watch": "The same without any key that changes something.",
    "status": "One look at a host: GPUs, servers, phases, readiness.",
    "log": "Milestones, verdict and diagnoses of a log file; no connection.",
    "check": "Preflight: would a launch work?",
    "kill": "Stop a server, whatever it takes, and verify its GPUs.",
    "clean": "Free GPU memory that a dead server left.",
    "launch": "Start a server of the profile, or one seen there, as it was.",
    "restart": "Stop, verify, preflight, start, follow to a token.",
    "patch": "Change values in a config file on the host.",
    "undo": "Take the newest patch back.",
    "runbook": "A procedure, step after step; goes on where it was cut off.",
    "notify": "Who is told of what outside the terminal.",
    "report": "What was done, when, with what evidence: Markdown or one HTML page.",
    "bench": "How fast a server is; kept, so that it can be compared.",
    "compare": "Kept benchmarks side by side: faster, slower, or not to be told apart.",
    "runs": "The benchmarks that were kept.",
    "doctor": "What can be seen and done on a host, and why not the rest.",
    "replay": "A recording through the same screens.",
    "demo": "The dashboard on a simulated host.",
    "sim": "Only the simulated host (Linux).",
    "keys": "All keys, by scope and risk.",
    "init": "A first profile from what runs on a host; never overwrites.",
    "config": "The profile: check it, find it, its schema.",
    "themes": "The colour themes that can be chosen.",
    "completion": "What a shell needs to complete commands, hosts and variants.",
    "help": "Pages: first steps, keys, profile, verdict, troubleshooting …",
}
"""Name → what ``--help`` says of it. The command is ``specdash.commands.NAME.command``."""

EXIT_CODES: Final = """\b
Exit codes: 0 fine, 1 a problem was found or an action failed, 2 usage,
3 could not connect, 4 refused: only watching, not confirmed,
or one of several servers must be named."""
