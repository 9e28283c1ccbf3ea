"""One host, looked at: its link and its picture.

May touch: the clock, a host by its link, a command with a key.

``live`` holds the link and the monitor; ``source`` says what any host offers: live, replayed or simulated.
"""
