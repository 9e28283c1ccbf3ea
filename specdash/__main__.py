"""``python -m specdash`` is the same as the ``specdash`` command."""

from specdash.start import main

if __name__ == "__main__":
    main()
