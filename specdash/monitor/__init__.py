"""Pure: frames go in, an immutable picture of one host comes out.

May touch: nothing. The time is in the frame.
"""
