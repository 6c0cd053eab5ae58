"""What `check` looks for, one file for each kind of finding."""
