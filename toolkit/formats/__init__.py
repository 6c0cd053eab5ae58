"""Formats: other tools' settings as policies, and policies as their settings; one module for each format.

Only values in and out; reads and writes no files.
"""
