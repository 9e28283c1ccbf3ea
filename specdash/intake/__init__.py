"""How frames become a picture, live or replayed, through one door.

May touch: the config folder's ``engines``, to read them.
"""
