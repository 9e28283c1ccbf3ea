"""Carrying out a benchmark: the load, its course, what is kept.

May touch: the clock, HTTP, a load generator here, a host by requests.
"""
