"""How a host is reached and kept: SSH or a local pipe, one link.

May touch: the network, ``ssh``, ``~/.ssh``.
"""
