"""Execution: the only package that changes a workspace."""
