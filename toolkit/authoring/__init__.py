"""Authoring: what policy authors use to see, test and derive rules."""
