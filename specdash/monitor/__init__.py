"""The pure half of specdash: frames go in, an immutable picture of one host comes out.

Nothing in this room reads a clock, a file or a socket. The time is in the frame.
"""
