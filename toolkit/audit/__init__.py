"""Audit log: one record per call, linked by a hash chain."""
