"""What each engine prints, answers and calls its processes.

May touch: its own TOML files.
"""
