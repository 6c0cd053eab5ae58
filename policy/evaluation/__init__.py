"""Evaluation: what a policy says about a call, and why."""
