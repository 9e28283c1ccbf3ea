"""Carrying out a benchmark: the load, its course, what is kept.

May touch: the clock, HTTP, a load generator, a host by requests.
"""
