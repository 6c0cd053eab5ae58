"""Storage: confined trees on the local disk and on every other store."""
