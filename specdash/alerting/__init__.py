"""Alerts out of the terminal: which, to whom, and how.

May touch: the clock, the network, a command with an address.
"""
