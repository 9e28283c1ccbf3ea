"""The received bytes of one log, with line offsets: the log view's memory."""

from __future__ import annotations


class LogBuffer:
    """Bytes and offsets of the lines of one log."""
