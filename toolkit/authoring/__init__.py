"""Authoring: for those who write policies."""
