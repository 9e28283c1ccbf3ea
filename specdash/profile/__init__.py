"""``specdash.toml``: its types, how it is read, its schema.

May touch: that file, to read it.
"""
