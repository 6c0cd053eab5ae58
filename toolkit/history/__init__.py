"""The history: the state of each path before each change."""
