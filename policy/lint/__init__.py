"""Lint: the findings of `check`, one module for each kind."""
