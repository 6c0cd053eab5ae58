"""Azure Blob Storage as a confined tree."""

from ringfence.toolkit.storage.azure.backend import Azure

__all__ = ["Azure"]
