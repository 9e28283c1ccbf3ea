"""``python -m specdash`` is the same as the ``specdash`` command."""

from specdash.cli import main

if __name__ == "__main__":
    main()
