"""Plans: what a tool answers with, as values."""
