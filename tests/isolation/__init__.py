"""Ringfence as it is installed, in folders whose files want to be imported in place of its own."""
