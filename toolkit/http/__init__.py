"""HTTP interface of sessions: calls, verdicts and approvals. It has no rules of its own.

Only a bearer token identifies the caller; the middleware stands in front of every route.
"""
