"""Monitoring: live views for people who watch agents work."""
