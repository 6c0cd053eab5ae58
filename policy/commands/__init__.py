"""Commands in policies: the words of a command line, the patterns that match them, and what a line needs."""
