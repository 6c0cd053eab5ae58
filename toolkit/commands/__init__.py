"""Commands: run in a sandbox, and the plan of what they would change."""
