"""Task folders: a second confined root, named `@tasks` in paths, of folders that are named by UUIDs.

What is looked at and said is here; the tools plan with it and `ringfence.toolkit.execution.apply` alone changes anything.
"""
