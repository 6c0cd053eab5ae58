"""Task folders: a second confined root, named `@tasks` in paths, of folders that are named by UUIDs.

What is looked at and said is here. The tools plan with it; `toolkit.execution.apply` alone changes anything.
"""
