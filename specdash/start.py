"""Where the ``specdash`` command begins: Python needs a tenth of a second to load the rest."""

from specdash.loading import loading


def main() -> None:
    """Run the command line (see ``specdash.cli``)."""
    with loading():
        from specdash.cli import main as run
    run()
