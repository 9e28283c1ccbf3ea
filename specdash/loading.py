"""What ctrl+c does while our modules are imported.

Python loses an interrupt, or makes another error of it, where a module is being imported. So until there is
somebody to say it in a line, the signal ends us as it ends any program.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """While this is open, ctrl+c ends the process at once (unless somebody has other plans with it)."""
    ours = threading.current_thread() is threading.main_thread()
    hasty = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hasty:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if hasty:
            signal.signal(signal.SIGINT, signal.default_int_handler)
