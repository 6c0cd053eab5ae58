"""Hooks: verdicts for other programs' file tools; an event of a host in, an answer out.

Judges, and never changes a file of a workspace; any failure is exit status 2, which blocks the call. Must
start fast: the host starts it anew for every call.
"""
