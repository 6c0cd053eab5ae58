"""State: the database for history, approvals and audit."""
