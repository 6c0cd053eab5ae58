"""Patterns: text to pattern to matcher."""
