"""Sessions behind HTTP: calls, decisions and approvals. It has no rules of its own.

Who calls is told by a bearer token and nothing else; `protect` stands in front of every route.
"""
