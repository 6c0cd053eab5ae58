"""The workspace: the confined tree, and the read-only view of it that tools get."""
