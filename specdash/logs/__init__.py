"""A server's log as bytes: what is kept, shown and found of it.

May touch: a log file on this machine, to read it.

Nothing here draws, connects or decides a state: the log view (``specdash.tui.widgets.logview``), a replay and
the ``log`` command all read the same memory.
"""
