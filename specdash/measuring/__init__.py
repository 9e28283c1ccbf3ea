"""Carrying out a benchmark: the load generator is started, listened to and stopped; runs are kept."""
