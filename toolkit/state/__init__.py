"""The state: one database for history, approvals and audit."""
