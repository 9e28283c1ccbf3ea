"""A server's log as bytes with line offsets: what is kept, what is shown of it, what is found in it.

Nothing here draws, connects or decides a state: the log view (``specdash.tui.widgets.logview``), a replay and
the ``log`` command all read the same memory.
"""
