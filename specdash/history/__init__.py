"""What stays after a session: recordings that can be replayed, turned into a test or sent to somebody."""
