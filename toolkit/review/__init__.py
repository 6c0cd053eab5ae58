"""The web page on which people look at what agents do, decide on what they ask, and put things back.

It has no rules of its own and makes no call. Every string of a call is escaped where it is shown.
"""
