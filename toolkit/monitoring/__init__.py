"""Monitoring: for those who watch agents work."""
