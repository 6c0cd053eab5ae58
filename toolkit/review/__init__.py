"""Review pages: people see what agents do, decide on approvals, and undo changes.

They have no rules of their own and make no calls. Every string of a call is escaped where it is displayed.
"""
