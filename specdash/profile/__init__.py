"""``specdash.toml``: its types, how it is read and checked, its schema.

May touch: that file, to read it.
"""
