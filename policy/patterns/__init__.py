"""Patterns: parses pattern texts and matches paths against them."""
