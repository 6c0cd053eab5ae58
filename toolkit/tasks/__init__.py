"""Task folders: a second confined root, `@tasks` in paths, whose folders have UUIDs as names.

Reads the store and makes texts about it. The tools plan changes; only `toolkit.execution` makes them.
"""
