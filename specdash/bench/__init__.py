"""The mathematics of a benchmark: figures, intervals, verdicts.

May touch: nothing. ``specdash.measuring`` measures.
"""
