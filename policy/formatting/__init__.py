"""Formatting: the layout of policy files, for `ringfence fmt`."""
