"""Any fsspec file system as a confined tree."""
