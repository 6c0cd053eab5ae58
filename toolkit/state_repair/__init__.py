"""State repair: checks, adopts and salvages a state."""
