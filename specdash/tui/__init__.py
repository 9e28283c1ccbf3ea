"""The screens, in Textual: app, screens, widgets, keys, colours.

May touch: the terminal, the clock, files of yours; never SSH or the agent.
"""
