"""The screens, in Textual: app, screens, widgets, keys, colours.

May touch: the terminal, the clock, your files; no SSH, no agent.
"""
