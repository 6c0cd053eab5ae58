"""Other tools' settings read as policies, and policies written as theirs: one module for each format.

Only values in and out; reads and writes no files.
"""
