"""Alerts out of the terminal: which change is told where, and how it is sent."""
