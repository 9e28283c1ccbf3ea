"""The profile, ``specdash.toml``: its types, how it is read and checked, its schema, a first draft of it."""
