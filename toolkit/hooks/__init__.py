"""Verdicts for other programs' file tools: an event of a host in, its answer out.

Judges and never changes a file of a workspace; whatever goes wrong is exit status 2, which blocks the call.
Must stay light: the host starts it anew for every call.
"""
