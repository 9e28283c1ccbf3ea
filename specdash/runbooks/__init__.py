"""Procedures: steps that tick themselves, to-dos, runbooks.

May touch: the clock, a host by operations, the state folder.
"""
