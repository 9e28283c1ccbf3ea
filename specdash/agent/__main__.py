"""``python -m specdash.agent``: the agent on this machine, as the target ``local`` runs it."""

import sys

import specdash
from specdash.agent.main import main

if __name__ == "__main__":
    main(
        options={
            "watch": "--watch" in sys.argv,
            "probe": "--probe" in sys.argv,
            "version": specdash.__version__,
        }
    )
