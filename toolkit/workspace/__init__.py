"""The workspace: the confined tree, and its read-only view for tools."""
