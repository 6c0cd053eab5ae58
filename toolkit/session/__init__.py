"""The session: a call through its stages, from arguments to record."""
