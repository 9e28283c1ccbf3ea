"""What stays: benchmarks, learned times, to-dos, recordings.

May touch: the state folder, recordings, the clock of a replay.
"""
