"""One host, looked at: frames come in by one door and become a picture for screens and commands.

``live`` holds the link and the monitor; ``source`` says what any host offers: live, replayed or simulated.
"""
