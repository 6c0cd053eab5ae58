"""State repair: check, adopt and salvage a state."""
