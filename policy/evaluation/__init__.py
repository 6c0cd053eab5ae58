"""Evaluation: the verdict on a call, and its explanation."""
