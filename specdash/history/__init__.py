"""What stays: benchmarks, learned times, to-dos, recordings.

May touch: the state folder, the file of a recording, a replay's clock.
"""
