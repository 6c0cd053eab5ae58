"""Storage: confined trees over the local disk and every other store."""
