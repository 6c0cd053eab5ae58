"""Undo: plans that take calls back. Changes nothing itself."""
