"""Analysis: exact statements about every path."""
