"""Undo: plans that undo calls. Changes nothing itself."""
