"""Plans: the answers and planned changes of tools, as values."""
