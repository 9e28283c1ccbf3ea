"""Benchmarks: what is asked of a server, what the load generator says, and the figures made of it."""
