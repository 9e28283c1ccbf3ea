"""Where the ``specdash`` command begins.

Python needs a tenth of a second to load the rest. Whoever presses ctrl+c within it would get a traceback of
our imports: so until there is somebody to say it in a line, the signal ends us as it ends any program.
"""

import signal


def main() -> None:
    """Run the command line (see ``specdash.cli``)."""
    hasty = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hasty:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from specdash.cli import main as run

    if hasty:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
