"""Approvals: requests, answers and grants."""
