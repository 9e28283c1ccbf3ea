"""How a host is reached and kept: SSH or a local pipe, the agent sent in memory, one link that comes back."""
