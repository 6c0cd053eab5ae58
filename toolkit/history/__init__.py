"""The history: what was there before each change."""
