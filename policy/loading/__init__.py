"""Loading: policy files read, checked, merged and cached."""
