"""The audit log: one record a call, chained by hash."""
