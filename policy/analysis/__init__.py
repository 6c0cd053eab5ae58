"""Analysis: exact statements about every possible path."""
